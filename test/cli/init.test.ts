import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { whoMayAsk } from "../../cli/init/acceptance.ts";
import { agentText, configText } from "../../cli/init/templates.ts";
import { writeNew } from "../../cli/init/write.ts";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { loadAgents } from "../../shared/config/load-agents.ts";
import { run } from "./run.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const folders: string[] = [];
const newFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-init-"));
  folders.push(folder);
  return folder;
};
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
const init = (...args: string[]) => run(["init", ...args], { cwd: tmpdir() });
const formatted = (path: string, input: string) =>
  spawnSync(join(ROOT, "node_modules/.bin/biome"), ["format", `--stdin-file-path=${path}`], {
    cwd: ROOT,
    input,
    encoding: "utf8",
  }).stdout;

test("what it writes is a deployment whose agent takes its first task", async (t) => {
  const folder = newFolder();
  const { code, stdout, stderr } = await init(folder, "--deployment", "acme", "--agent", "greeter");
  assert.equal(code, 0, stderr);
  assert.match(
    stdout,
    /^written {2}agents\/greeter\.ts\nwritten {2}agents\.yaml\nwritten {2}tsconfig\.json\n\nin the clone \(\/.*\):\nnpm start -- --config /,
  );
  // Whoever has not started it yet is told the same: another start would be of another deployment.
  const start = /^npm start .*$/m.exec(stdout)?.[0] ?? assert.fail(stdout);
  const doctor = await run(["doctor", "--nats", "nats://127.0.0.1:1"], { cwd: folder });
  assert.ok(doctor.stdout.includes(`start Sluice with \`cd ${ROOT} && ${start}\`, or`), doctor.stdout);
  assert.ok(doctor.stdout.includes(`→ cd ${ROOT} && ${start}\n`), doctor.stdout);

  const { deployment } = readAgentsYaml(
    join(folder, "agents.yaml"),
    await loadAgents(join(folder, "agents")),
  );
  assert.equal(deployment.deployment, "acme");
  const [agent] = deployment.agents;
  assert.deepEqual([agent?.runtime, agent?.policy.acceptFromRuntimes], ["acme-greeter", ["acme-cli"]]);

  const args = ["--once", "--nats-port", "0", "--data", join(folder, ".sluice")];
  args.push("--config", join(folder, "agents.yaml"), "--agents-dir", join(folder, "agents"));
  const child = spawn(process.execPath, [join(ROOT, "infra/local/main.ts"), ...args]);
  t.after(() => child.kill("SIGKILL"));
  const [said, trouble] = await Promise.all([text(child.stdout), text(child.stderr)]);
  assert.match(said, /acme-cli asks acme-greeter/, trouble);
  assert.match(said, /Hello acme-cli, thank you for 18 words\./);
});

test("what is there stays as it is, and nothing to write is no success", async () => {
  const folder = newFolder();
  const config = "deployment: mine\n# untouched\n";
  writeFileSync(join(folder, "agents.yaml"), config);
  const first = await init(folder, "--yes", "--json");
  assert.deepEqual(first.json(), [
    { path: "agents/hello.ts", outcome: "written" },
    { path: "agents.yaml", outcome: "kept" },
    { path: "tsconfig.json", outcome: "written" },
  ]);
  assert.equal(first.code, 0);
  const agent = readFileSync(join(folder, "agents/hello.ts"), "utf8");
  const second = await init(folder, "--yes", "--description", "Another.");
  assert.equal(second.code, 1);
  assert.equal(readFileSync(join(folder, "agents/hello.ts"), "utf8"), agent);
  assert.equal(readFileSync(join(folder, "agents.yaml"), "utf8"), config);
});

test("outside of the clone a type check finds Sluice and its packages, and in it there is no need", async () => {
  const folder = newFolder();
  await init(folder, "--yes");
  writeFileSync(
    join(folder, "agents/other.ts"),
    `import { generateText } from "ai";
     import { readFileSync } from "node:fs";
     import { startTask } from "sluice/testing";
     const wrong: string = [generateText, readFileSync, startTask].length;`,
  );
  const check = spawnSync(join(ROOT, "node_modules/.bin/tsc"), ["-p", folder], { encoding: "utf8" });
  assert.match(check.stdout, /^\S*agents\/other\.ts\(4,12\): error TS2322: [^\n]*\n$/);
  const inside = mkdtempSync(join(ROOT, ".cache/init-"));
  folders.push(inside);
  const { stdout } = await init(inside, "--yes");
  assert.doesNotMatch(stdout, /tsconfig/);
});

test("beside an agents.yaml its deployment counts, nothing is asked, and another name is refused", async () => {
  const folder = newFolder();
  writeFileSync(join(folder, "agents.yaml"), "deployment: acme\n");
  const other = await init(folder, "--agent", "support", "--deployment", "dev");
  assert.equal(other.code, 2);
  assert.match(other.stderr, /--deployment dev: the agents\.yaml that is there says deployment: acme/);
  for (const args of [["support"], ["again", "--deployment", "acme"]] as const) {
    const { code, stdout, stderr } = await init(folder, "--agent", ...args);
    assert.equal(code, 0, stderr);
    assert.ok(stdout.startsWith(`written  agents/${args[0]}.ts\nkept     agents.yaml`), stdout);
    assert.match(stdout, new RegExp(`^agents\\.yaml lets nobody ask ${args[0]}: `, "m"));
  }
});

test("beside an agents.yaml it is told where that says who may ask the agent", () => {
  const told = (text: string) => whoMayAsk("agents.yaml", `deployment: acme\n${text}\n`, "support");
  const says = "says who may ask support (docs/configuration.md)";
  const own = "agents:\n  support:\n    acceptFromRuntimes: [eve-room]";
  assert.equal(told(own), `agents.yaml:4: agents.support.acceptFromRuntimes: ${says}`);
  const usual = "defaults:\n  acceptFromRuntimes: []";
  assert.equal(told(usual), `agents.yaml:3: defaults.acceptFromRuntimes: ${says}`);
  assert.equal(told(`${usual}\n${own}`), `agents.yaml:6: agents.support.acceptFromRuntimes: ${says}`);
  assert.match(told("agents: { support: { acceptFrom: ['*'] } }"), /:2: agents\.support\.acceptFrom: /);
  for (const none of ["", "agents:", "agents: { support: }", "defaults:\n  maxConcurrent: 1"])
    assert.match(told(none), /^agents\.yaml lets nobody ask support: give agents\.support the field acc/);
});

test("what is no name, or is not said where nobody can be asked, is told", async () => {
  const folder = newFolder();
  for (const [args, said] of [
    [[], /--deployment: without a terminal it is required, or --yes/],
    [["--deployment", "acme"], /--agent: without a terminal it is required/],
    [["--yes", "--deployment", "a b"], /--deployment: expected 1 to 32 of/],
    [["--yes", "--agent", "Hello"], /--agent: expected 1 to 48 of a-z/],
    [["--yes", "--agent", "a".repeat(49)], /--agent: expected 1 to 48/],
    [["--yes", "--description", " "], /--description: expected a sentence/],
  ] as const) {
    const { code, stderr } = await init(folder, ...args);
    assert.equal(code, 2, args.join(" "));
    assert.match(stderr, said);
  }
  writeFileSync(join(folder, "file"), "");
  const { code, stderr } = await init(join(folder, "file"), "--yes");
  assert.deepEqual([code, /agents\/hello\.ts: cannot be written/.test(stderr)], [1, true]);
});

const noProc = existsSync("/proc/self") ? false : "there is no /proc here";
test("where no folder can be made, that is said", { skip: noProc }, async () => {
  const files = [{ path: "agents/hello.ts", text: "" }];
  await assert.rejects(
    writeNew("/proc/sluice-none", files),
    /agents\/hello\.ts: cannot be written: .*\/proc\//,
  );
  const folder = newFolder();
  await writeNew(join(folder, "a/b/c"), files);
  assert.ok(existsSync(join(folder, "a/b/c/agents/hello.ts")));
});

test("any description and name give files that the project's own check takes", () => {
  for (const description of ["Short.", 'It said "hello".', 'It\'s "both".', "\\ and \n", "x".repeat(500)]) {
    const agent = agentText({ agent: "true", description });
    assert.equal(formatted("agents/true.ts", agent), agent);
  }
  for (const name of ["local", "123", "true", "null"]) {
    const config = configText({ deployment: name, agent: "0" });
    const { deployment } = readAgentsYaml("agents.yaml", [], () => config.replace(/^agents:[\s\S]*/m, ""));
    assert.equal(deployment.deployment, name);
  }
});

test("an agent is not called like the command, and a folder may be called anything", async () => {
  for (const name of ["cli", "cli-"]) {
    const { code, stderr } = await init(newFolder(), "--yes", "--agent", name);
    assert.deepEqual([code, /--agent: expected another name/.test(stderr)], [2, true], stderr);
  }
  const folder = join(newFolder(), "it's mine");
  const { stdout } = await init(folder, "--yes");
  const quoted = `'${folder.replace("'", "'\\''")}`;
  assert.ok(stdout.includes(`--config ${quoted}/agents.yaml'`), stdout);
  assert.ok(stdout.includes(`--data-folder ${quoted}/.sluice'`), stdout);
});
