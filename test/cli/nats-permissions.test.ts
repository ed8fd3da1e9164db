import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import * as z from "zod";
import { NATS_FUNCTIONS, type NatsUser, natsGrants } from "../../shared/nats/permissions.ts";
import { findNatsServer } from "../support/nats-server.ts";
import { run } from "./run.ts";

const cwd = mkdtempSync(join(tmpdir(), "sluice-nats-permissions-"));
mkdirSync(join(cwd, "agents"));
for (const id of ["plain", "boss"])
  writeFileSync(
    join(cwd, "agents", `${id}.ts`),
    `import { defineAgent } from "sluice";
import * as z from "zod";
export default defineAgent({
  id: "${id}", description: "x", version: "1.0.0",
  skills: { task: { name: "x", description: "x", tags: [], input: z.unknown(), run: async () => "x" } },
});
`,
  );
writeFileSync(
  join(cwd, "agents.yaml"),
  "deployment: acme\nagents:\n  plain: {}\n  boss: { delegateTargets: [{ runtimeAgentId: acme-plain }] }\n",
);
after(() => rmSync(cwd, { recursive: true }));

const AGENTS = [
  { runtime: "acme-boss", delegates: true },
  { runtime: "acme-plain", delegates: false },
];
const print = (...args: string[]) => run(["nats-permissions", ...args], { cwd });

test("what is printed is what the functions need: of all, of one agent, of one function", async () => {
  const [all, plain, admit] = await Promise.all([
    print("--json"),
    print("--json", "--agent", "acme-plain"),
    print("--json", "--agent", "boss", "--function", "admit"),
  ]);
  assert.deepEqual(all.json(), natsGrants({ deployment: "acme", agents: AGENTS }));
  assert.deepEqual(plain.json(), natsGrants({ deployment: "acme", agents: AGENTS.slice(1) }));
  assert.deepEqual(
    admit.json(),
    natsGrants({ deployment: "acme", agents: AGENTS.slice(0, 1), functions: ["admit"] }),
  );
  assert.ok(!plain.stdout.includes("boss") && !plain.stdout.includes("a2a_events_"), plain.stdout);
});

test("an operator's user, and one for all of a local host", async () => {
  const [operator, local] = await Promise.all([
    print("--json", "--function", "command", "--function", "erase"),
    print("--json", "--local"),
  ]);
  const of = (...functions: NatsUser[]) => natsGrants({ deployment: "acme", agents: AGENTS, functions });
  assert.deepEqual(operator.json(), of("command", "erase"));
  assert.deepEqual(local.json(), of(...NATS_FUNCTIONS, "start", "command"));
  const subjects = of(...NATS_FUNCTIONS, "start", "command").map(({ kind, subject }) => kind + subject);
  assert.equal(new Set(subjects).size, subjects.length);
});

test("the server takes what is printed for its configuration, with the same subjects", async () => {
  const { stdout, code } = await print("--format", "server");
  assert.equal(code, 0);
  const file = join(cwd, "nats.conf");
  writeFileSync(file, `authorization { users: [\n${stdout}] }\n`);
  const env = { ...process.env, SLUICE_ACME_PASSWORD: "secret" };
  const checked = spawnSync(await findNatsServer(), ["-t", "-c", file], { env, encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stderr);
  const told = Array.from(stdout.matchAll(/^ {6}"(.+)"$/gm), ([, subject]) => subject);
  assert.deepEqual(
    told,
    natsGrants({ deployment: "acme", agents: AGENTS }).map(({ subject }) => subject),
  );
});

test("a shell hands nsc the subjects as they are", async () => {
  const { stdout } = await print("--format", "nsc", "--function", "work");
  const nsc = 'nsc() { for word in "$@"; do printf "%s\\n" "$word"; done; }';
  const words = spawnSync("sh", ["-c", `${nsc}\n${stdout}`], { encoding: "utf8" })
    .stdout.trim()
    .split("\n");
  const flag = { publish: "--allow-pub", subscribe: "--allow-sub" };
  assert.deepEqual(words, [
    ...["add", "user", "--name", "sluice-acme-work"],
    ...natsGrants({ deployment: "acme", agents: AGENTS, functions: ["work"] }).flatMap(
      ({ kind, subject }) => [flag[kind], subject],
    ),
  ]);
});

const wrong: readonly (readonly [readonly string[], RegExp])[] = [
  [["--agent", "plian"], /no agent "plian", did you mean plain\?; known here are boss, plain/],
  [["--function", "all"], /Expected one of bridge, admit/],
  [["--format", "yaml"], /Expected one of table, server, nsc/],
];
for (const [args, says] of wrong)
  test(`wrong: ${args.join(" ")}`, async () => {
    const { code, stderr } = await print(...args);
    assert.equal(z.number().parse(code), 2);
    assert.match(stderr, says);
  });
