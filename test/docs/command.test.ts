import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Command } from "commander";
import { program } from "../../cli/main.ts";
import { DOCS } from "./pages.ts";

const page = readFileSync(join(DOCS, "command.md"), "utf8");
const sluice = program();
const verbs = sluice.commands.flatMap((verb) => [verb, ...verb.commands]);
const optionsOf = (command: Command) => command.options.flatMap(({ long }) => long ?? []);
/** Of `npm start`, which the page names as well; docs/local-host.md has them. */
const OF_THE_HOST = ["--data", "--config", "--agents-dir"];

test("each verb of the command is on the page, and no other", () => {
  const told = new Set(
    Array.from(
      page.matchAll(/`(?:\.\/sluice )?((?:(?:dead|keys|peers|policy) )?[a-z-]+)(?: [[<][^`]*)?`/g),
      ([, verb]) => verb,
    ),
  );
  for (const verb of sluice.commands) {
    assert.ok(told.has(verb.name()), verb.name());
    for (const own of verb.commands) assert.ok(told.has(`${verb.name()} ${own.name()}`), own.name());
  }
  const names = new Set(verbs.map((verb) => verb.name()));
  for (const [, verb = ""] of page.matchAll(/\.\/sluice ([a-z][a-z-]*)/g)) assert.ok(names.has(verb), verb);
});

test("each verb is in the table at the page's top, and each that writes JSON in that section", () => {
  const [top = ""] = page.split("\n## ", 1);
  for (const verb of sluice.commands)
    assert.ok(
      top.includes(`\`./sluice ${verb.name()} `) || top.includes(`\`./sluice ${verb.name()}\``),
      verb.name(),
    );
  const [, json = ""] = /^## JSON\n(.*)/ms.exec(page) ?? [];
  for (const verb of sluice.commands)
    for (const leaf of verb.commands.length > 0 ? verb.commands : [verb]) {
      const name = leaf === verb ? verb.name() : `${verb.name()} ${leaf.name()}`;
      if (optionsOf(leaf).includes("--json")) assert.match(json, new RegExp(`\`${name}[ \`]`), name);
    }
});

test("each option of a verb is on the page, and no other", () => {
  const known = new Set([...verbs, sluice].flatMap(optionsOf));
  const told = new Set(Array.from(page.matchAll(/(?<![\w-])--[a-z][a-z-]*/g), ([option]) => option));
  for (const option of known) assert.ok(told.has(option), `${option} is not in docs/command.md`);
  for (const option of told)
    assert.ok(
      known.has(option) || option === "--help" || OF_THE_HOST.includes(option),
      `there is no ${option}`,
    );
});

test("each permission that doctor asks for in AWS is on the page", () => {
  const folder = join(DOCS, "../cli/doctor");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((of) => of.endsWith(".ts"));
  const asked = files.flatMap((file) =>
    Array.from(
      readFileSync(join(folder, file), "utf8").matchAll(/"([a-z0-9]+:[A-Z]\w+\*?)"|allow [^"`]*/g),
      ([text]) => text,
    ).flatMap((text) => text.match(/\b[a-z0-9]+:[A-Z]\w+\*?/g) ?? []),
  );
  assert.ok(asked.includes("cloudwatch:DescribeAlarms"));
  for (const action of new Set(asked))
    assert.ok(page.includes(action.endsWith("*") ? `\`${action.slice(0, -1)}` : `\`${action}\``), action);
});
