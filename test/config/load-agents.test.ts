import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { ConfigError } from "../../shared/config/config-error.ts";
import { agentFiles, agentNotes, loadAgents } from "../../shared/config/load-agents.ts";

const made: string[] = [];
after(() => {
  for (const folder of made) rmSync(folder, { recursive: true });
});

/** A folder outside the repository, as an operator may keep one. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-agents-"));
  made.push(folder);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

const agent = (id: string) => `
import { defineAgent, skill } from "sluice";
import * as z from "zod";
const task = skill({ name: "Greet", description: "Greets", input: z.string(), run: (task) => \`hi \${task.input}\` });
export default defineAgent({ id: "${id}", description: "Greets", skills: { task } });
`;

test("every file of the folder is an agent, wherever the folder lies", async () => {
  const folder = folderWith({
    "b.ts": agent("b"),
    "a.ts": agent("a"),
    "a.test.ts": "throw 1;",
    "a.d.ts": "",
    "notes.md": "",
  });
  assert.deepEqual(
    (await loadAgents(folder)).map(({ id }) => id),
    ["a", "b"],
  );
  assert.deepEqual(agentFiles(folder), [join(folder, "a.ts"), join(folder, "b.ts")]);
});

test("a file that another language or another ending keeps from being an agent is told of", () => {
  const other = ["b.js", "c.mjs", "d.cjs", "e.mts", "f.cts", "g.tsx", "h.jsx"];
  const passed = ["a.js", "a.test.js", "b.d.mts", "i.json", "notes.md", "parts/j.js"];
  const folder = folderWith({
    "a.ts": agent("a"),
    ...Object.fromEntries([...other, ...passed].map((name) => [name, ""])),
  });
  assert.deepEqual(
    agentNotes(folder),
    other.map(
      (name) =>
        `${join(folder, name)}: is not loaded: expected an agent's file whose name ends in .ts (docs/agents.md)`,
    ),
  );
});

const WRONG: readonly [name: string, files: Record<string, string>, complaint: RegExp][] = [
  [
    "an id that is not the file's name",
    { "a.ts": agent("b") },
    /a\.ts: id: expected "a", the file's name, got "b"$/,
  ],
  [
    "no default export",
    { "a.ts": "export const a = 1;" },
    /a\.ts: expected a default export made by defineAgent/,
  ],
  ["a default export of another kind", { "a.ts": "export default { id: 'a' };" }, /made by defineAgent/],
  [
    "a skill without an input",
    { "a.ts": agent("a").replace("input: z.string(), ", "") },
    /^\S+\/a\.ts: skills\.task\.input: expected a zod schema, got nothing$/,
  ],
  [
    "settings that are no schema",
    { "a.ts": agent("a").replace("skills:", "settings: 5, skills:") },
    /^\S+\/a\.ts: settings: expected a zod schema, got 5$/,
  ],
  [
    "skills misspelt",
    { "a.ts": agent("a").replace("skills:", "skils:") },
    /^\S+\/a\.ts: skills: expected a map$/,
  ],
  [
    "fields of another kind, each in a line",
    { "a.ts": agent("a").replace('name: "Greet"', "name: 1").replace("input: z.string()", "input: String") },
    /^\S+\/a\.ts: skills\.task\.name: expected a text, got 1\n\S+\/a\.ts: skills\.task\.input: expected a zod schema, got a function$/,
  ],
  [
    "a package that is not installed",
    { "a.ts": "import 'no-such-package';" },
    /a\.ts: .*no-such-package.* imported from \S*\/a\.ts$/,
  ],
  ["a mistake in its text", { "a.ts": "const a = 1;\nconst = 2;" }, /^\S+\/a\.ts:2: Unexpected token/],
  [
    "what only a compiler could run",
    { "a.ts": "const a = 1;\n\nenum Colour { red }" },
    /^\S+\/a\.ts:3: TypeScript enum is not supported/,
  ],
  [
    "a mistake in a file that it imports",
    { "a.ts": "import './parts/b.ts';", "parts/b.ts": "const = 2;" },
    /^\S+\/a\.ts: \S+\/parts\/b\.ts:1: Unexpected token/,
  ],
  [
    "an id that peers refuse",
    { "a.ts": agent("A b") },
    /^\S+\/a\.ts: id: expected 1 to 48 of a-z, 0-9 and -[^{]*$/,
  ],
  [
    "a slug that peers refuse",
    { "a.ts": agent("a").replace("skills: { task }", 'skills: { "a b": task }') },
    /^\S+\/a\.ts: skills\.a b: expected 1 to 64 of A-Z, a-z, 0-9, _ and -$/,
  ],
  [
    "a file that throws",
    { "a.ts": "type A = 1;\n throw new Error('no key');" },
    /^\/\S+\/a\.ts:2:8: no key$/,
  ],
  [
    "a file that calls what throws",
    {
      "a.ts": "import { key } from './parts/b.ts';\nkey();",
      "parts/b.ts": "export const key = () => { throw new Error('no key'); };",
    },
    /^\/\S+\/a\.ts:2:1: no key$/,
  ],
  [
    "a file that imports what throws",
    { "a.ts": "import './parts/b.ts';", "parts/b.ts": "throw new Error('no key');" },
    /^\/\S+\/a\.ts: \/\S+\/parts\/b\.ts:1:7: no key$/,
  ],
  ["a file that throws no error", { "a.ts": "throw 'no key';" }, /^\/\S+\/a\.ts: no key$/],
];
for (const [name, files, complaint] of WRONG)
  test(`error: ${name}`, async () => {
    const folder = folderWith(files);
    await assert.rejects(loadAgents(folder), (error) => {
      assert.ok(error instanceof ConfigError);
      assert.match(error.message, complaint);
      return true;
    });
  });

test("error: no folder", async () => {
  await assert.rejects(loadAgents("/nowhere/agents"), /\/nowhere\/agents: expected a folder of agents/);
});
