import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ConfigError } from "../../shared/config/config-error.ts";
import { agentFiles, loadAgents } from "../../shared/config/load-agents.ts";

const made: string[] = [];
after(() => {
  for (const folder of made) rmSync(folder, { recursive: true });
});

/** A folder outside the repository, as an operator may keep one. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-agents-"));
  made.push(folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
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
  ["a package that is not installed", { "a.ts": "import 'no-such-package';" }, /a\.ts: .*no-such-package/],
  ["a file that throws", { "a.ts": "throw new Error('no key');" }, /a\.ts: no key$/],
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
