import assert from "node:assert/strict";
import { globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import * as z from "zod";
import { ROOT } from "../../infra/bundle.ts";
import { CONTEXT, CONTEXT_OPTIONS } from "../../infra/context.ts";
import { agent, read } from "../config/support/agents-yaml.ts";
import { fieldRows } from "./fields.ts";
import { DOCS, WRITTEN, writtenPage } from "./pages.ts";

const pages = [
  "README.md",
  ...readdirSync(DOCS, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
];
const textOf = (page: string) => readFileSync(join(ROOT, page), "utf8");

for (const page of Object.keys(WRITTEN))
  test(`docs/${page} is what npm run docs writes`, () =>
    assert.equal(textOf(join("docs", page)), writtenPage(page)));

test("a page whose places are not those that the program writes is refused", () => {
  const strange = "<!-- other: written by npm run docs -->\n<!-- end -->\n";
  assert.throws(() => writtenPage("configuration.md", strange), /expected the places sections,.*got other/);
});

test("a field is told by its schema: what it takes, what it is otherwise, what it means", () => {
  const told = fieldRows({
    size: z.int().min(1).max(2_000).default(7).describe("How large."),
    kind: z.enum(["a", "b"]).describe("Which."),
    list: z
      .array(z.strictObject({ id: z.string().regex(/^x/, "expected x").describe("Who.") }))
      .max(3)
      .default([])
      .describe("All."),
  });
  assert.deepEqual(told, [
    { path: "size", values: "integer, 1 to 2,000", fallback: "`7`", meaning: "How large." },
    { path: "kind", values: "`a` or `b`", fallback: "required", meaning: "Which." },
    { path: "list", values: "list, 0 to 3", fallback: "`[]`", meaning: "All." },
    { path: "list[].id", values: "x", fallback: "required", meaning: "Who." },
  ]);
  assert.throws(() => fieldRows({ silent: z.string() }), /^Error: silent: its schema has no description$/);
});

test("each context option is given by its key", () => {
  assert.deepEqual(
    Object.values(CONTEXT_OPTIONS).map(({ usage }) => usage.split("=")[0]),
    Object.values(CONTEXT),
  );
});

test("each environment variable that the product reads is on a page", () => {
  // Set by systems, shells and Lambda, and the same everywhere.
  const usual = /^(AWS_LAMBDA_.*|LAMBDA_TASK_ROOT|XDG_CACHE_HOME|HOME|PATH|TERM)$/;
  const told = pages.map(textOf).join("\n");
  const sources = globSync("{shared,functions,infra,cli}/**/*.ts", { cwd: ROOT });
  const read = sources.flatMap((file) =>
    Array.from(textOf(file).matchAll(/\benv\.([A-Z][A-Z0-9_]+)/g), ([, name = ""]) => name),
  );
  assert.ok(read.includes("HEALTH_PORT") && read.includes("SLUICE_DATA"));
  for (const name of new Set(read))
    assert.ok(usual.test(name) || told.includes(name), `${name} is read, and told nowhere`);
});

test("each link within the pages leads to a page and a heading that there are", () => {
  const anchors = (page: string) =>
    new Set(
      Array.from(textOf(page).matchAll(/^#+ (.*)$/gm), ([, heading = ""]) =>
        heading
          .toLowerCase()
          .replace(/[^\p{L}\p{N} _-]/gu, "")
          .replaceAll(" ", "-"),
      ),
    );
  for (const page of pages)
    for (const [, target = "", anchor] of textOf(page).matchAll(/\]\(([^)#\s:]*)(?:#([^)\s]+))?\)/g)) {
      const file = target === "" ? page : join(dirname(page), target);
      const said = `${page}: ${target}#${anchor ?? ""}`;
      assert.doesNotThrow(() => textOf(file), said);
      if (anchor !== undefined) assert.ok(anchors(file).has(anchor), said);
    }
});

test("each agents.yaml that the page on deploying shows is read", () => {
  const shown = Array.from(
    textOf("docs/deploying.md").matchAll(/```yaml\n(.*?)```/gs),
    ([, text = ""]) => text,
  );
  assert.ok(shown.length >= 2);
  for (const text of shown) {
    const whole = text.includes("deployment:") ? text : `deployment: acme\n${text}`;
    assert.equal(read(whole, [agent("support"), agent("llm")]).deployment, "acme", text);
  }
});
