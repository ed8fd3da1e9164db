import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { calculate } from "../../agents/parts/calculator.ts";
import { ROOT } from "../../infra/bundle.ts";
import { timing } from "../../shared/config/timing.ts";
import { MAX_TASK_MESSAGE_ID } from "../../shared/wire/ids.ts";
import { DOCS } from "./pages.ts";

const page = readFileSync(join(DOCS, "limits.md"), "utf8");
const sourceOf = (file: string) => readFileSync(join(ROOT, file), "utf8");

/** A row of the page: what it says, and where the code has it: a number, or words that stand there. */
interface Limit {
  readonly value: string;
  readonly code: string;
  readonly file: string;
}

const limits = Array.from(
  page.matchAll(/^\| [^|]+ \| ([\d,]+ [^|]+) \| `([^`]+)` \[[^\]]+\]\(([^)]+)\) \|/gm),
  ([, value = "", code = "", link = ""]): Limit => ({ value, code, file: relative(ROOT, join(DOCS, link)) }),
);

const MS = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };
const BYTES: Readonly<Record<string, number>> = { byte: 1, KiB: 1_024, MiB: 1_048_576 };

/** What is no sum of numbers in the code. */
const COMPUTED: ReadonlyMap<string, number> = new Map([
  ...Object.entries(timing()),
  ["MAX_TASK_MESSAGE_ID", MAX_TASK_MESSAGE_ID],
]);

/** A number and a unit as a number: of times in milliseconds, of sizes in bytes, of all else how many. */
function read(value: string): number {
  const [number = "", unit = ""] = value.split(" ");
  const one = unit.replace(/s$/, "");
  const scale = Object.entries({ ...MS, ...BYTES }).find(([name]) => name === one)?.[1] ?? 1;
  return Number(number.replaceAll(",", "")) * scale;
}

const constants = (text: string) =>
  new Map(
    Array.from(
      text.matchAll(/^(?:export )?const ([A-Z][A-Z0-9_]*)(?::[^=\n]+)? =\s([^;]+);/gm),
      ([, name = "", value = ""]) => [name, value] as const,
    ),
  );

/** The constants of a file and of those of ours that it imports. */
function inReach(file: string): Map<string, string> {
  const text = sourceOf(file);
  const imported = Array.from(text.matchAll(/from "(\.[^"]+\.ts)"/g), ([, path = ""]) =>
    constants(sourceOf(join(dirname(file), path))),
  );
  return new Map([...imported, constants(text)].flatMap((of) => [...of]));
}

/** What a constant comes to, those put in that it is made of; `undefined` when it is no number. */
function valueIn(file: string, name: string): number | undefined {
  const known = inReach(file);
  let value = known.get(name);
  while (value !== undefined && /[A-Z]{2,}/.test(value))
    value = value.replace(/\b[A-Z][A-Z0-9_]+\b/g, (word) => `(${known.get(word) ?? "?"})`);
  try {
    return value === undefined ? undefined : calculate(value.replaceAll("_", ""));
  } catch {
    return undefined;
  }
}

test("each limit is what the code has", () => {
  const rows = page.match(/^\| .*\]\(\.\.\/.*$/gm);
  assert.equal(limits.length, rows?.length, "a row has a number, a unit, code and a file");
  for (const { value, code, file } of limits) {
    const constant = valueIn(file, code);
    const said = `${file}: ${code} is ${constant}, told as ${value}`;
    if (constant !== undefined) {
      const unit = code.endsWith("_SEC") ? MS.second : code.endsWith("_DAYS") ? MS.day : 1;
      assert.equal(constant * unit, read(value), said);
    } else if (COMPUTED.has(code)) assert.equal(COMPUTED.get(code), read(value), said);
    else {
      assert.ok(sourceOf(file).includes(code), `${file}: has no ${code}`);
      const [number = ""] = value.split(" ");
      assert.ok(code.includes(number), said);
    }
  }
});

/** Bounds of pauses and of what a machine's timer takes: nobody meets them. */
const INTERNAL = /^(MAX_PAUSE_MS|MAX_RETRY_MS|MAX_TIMER_MS)$/;

test("each bound of the product's code is on the page", () => {
  const told = new Set(limits.map(({ file, code }) => `${file} ${code}`));
  const sources = globSync("{shared,functions,cli}/**/*.ts", { cwd: ROOT });
  const bounds = sources
    .filter((file) => !file.startsWith("shared/testing/"))
    .flatMap((file) => [...constants(sourceOf(file)).keys()].map((name) => [file, name] as const))
    .filter(([, name]) => name.startsWith("MAX_") && !INTERNAL.test(name));
  assert.ok(bounds.length > 50);
  for (const [file, name] of bounds) {
    assert.ok(told.has(`${file} ${name}`), `${file}: ${name} is not in docs/limits.md`);
  }
  for (const name of Object.keys(timing()).filter((field) => field !== "scale"))
    assert.ok(told.has(`shared/config/timing.ts ${name}`), name);
});
