import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gather, stateOf } from "../../cli/agents.ts";
import { findHome, readFolder, readHome } from "../../cli/home.ts";
import { findNats, knownNats } from "../../cli/nats.ts";
import { count, MAX_TIMEOUT_SEC, seconds, stack } from "../../cli/options.ts";
import { keysOf, meant } from "../../cli/resolve.ts";
import { CLONE, startCommand } from "../../cli/start-again.ts";
import { ownTarget } from "../../cli/target.ts";
import { taskIdOf } from "../../shared/wire/index.ts";

/** A folder with the files given, removed when the test ends. */
function folder(t: { after(fn: () => void): void }, files: Record<string, string>): string {
  const path = mkdtempSync(join(tmpdir(), "sluice-home-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(path, name, ".."), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

test("a folder without agents.yaml is the deployment local with the agents that lie there", (t) => {
  const home = readHome(folder(t, { "agents/echo.ts": "", "agents/digest.ts": "", "agents/notes.md": "" }));
  assert.equal(home.deployment, "local");
  assert.deepEqual(home.agents, ["digest", "echo"]);
  const { start, ...usual } = findNats({}, {}, home);
  assert.equal(start, home.start);
  assert.deepEqual(usual, { servers: ["nats://127.0.0.1:4222"], credentials: "none" });
});

test("NATS: --nats, then NATS_URL, then the running host, then agents.yaml", (t) => {
  const yaml = "nats: { servers: [nats://yaml:4222], credentials: file:me.creds, tls: { ca: file:ca.pem } }";
  const host = JSON.stringify({ pid: process.pid, nats: "nats://host:1", more: true });
  const path = folder(t, { "agents.yaml": yaml, ".sluice/host.json": host });
  const home = readHome(path);
  const env = { NATS_URL: "nats://env:1" };
  const servers = (options: { nats?: string }, of = env, at = home) => findNats(options, of, at).servers;
  assert.deepEqual(servers({ nats: "a:1, tls://b:2/" }), ["nats://a:1", "tls://b:2"]);
  assert.deepEqual(servers({}), ["nats://env:1"]);
  assert.deepEqual(servers({}, { NATS_URL: "" }), ["nats://host:1"]);
  const dead = readHome(
    folder(t, { "agents.yaml": yaml, ".sluice/host.json": '{"pid":4194305,"nats":"nats://x:1"}' }),
  );
  assert.deepEqual(servers({}, { NATS_URL: "" }, dead), ["nats://yaml:4222"]);
  assert.throws(() => servers({ nats: "http://x" }), /--nats: expected a URL/);
});

test("a running host tells where its parts are", (t) => {
  const stack = { dynamodb: "http://127.0.0.1:1", s3: "http://127.0.0.1:2", table: "t", bucket: "b" };
  const of = (told: object) =>
    readHome(
      folder(t, { ".sluice/host.json": JSON.stringify({ pid: process.pid, nats: "nats://a:1", ...told }) }),
    );
  // One that an older version has started tells no outputs.
  assert.deepEqual(of(stack).stack, { ...stack, pid: process.pid, outputs: {}, timeScale: 1 });
  const more = {
    ...{ sqs: "http://127.0.0.1:3", outputs: { TableName: "t" }, dataDir: "/d", timeScale: 20 },
    credentialVariables: ["KEY"],
  };
  assert.deepEqual(of({ ...stack, ...more }).stack, { ...stack, ...more, pid: process.pid });
  const { table: _, ...rest } = stack;
  for (const told of [rest, { ...stack, pid: 4194305 }, { ...stack, dynamodb: "here" }])
    assert.equal(of(told).stack, undefined);
  assert.deepEqual(of(rest).host?.servers, ["nats://a:1"]);
});

test("a host whose data lies elsewhere is found by its folder, and must run", (t) => {
  const data = folder(t, { "host.json": JSON.stringify({ pid: process.pid, nats: "nats://elsewhere:1" }) });
  const here = folder(t, { "agents.yaml": "deployment: acme" });
  const home = readHome(here, data);
  assert.deepEqual([home.deployment, home.host?.servers], ["acme", ["nats://elsewhere:1"]]);
  assert.throws(() => readHome(here, join(data, "none")), {
    exitCode: 3,
    message: /no local host runs on .*none/,
  });
});

test("advice to start the host is the command by which it was last started there, or that starts what is there", (t) => {
  assert.equal(startCommand(join(CLONE, ".sluice")), readHome(CLONE).start ?? "npm start");
  const none = folder(t, { "agents.yaml": "deployment: acme", "agents/echo.ts": "" });
  const files = `--config ${none}/agents.yaml --agents-dir ${none}/agents`;
  assert.equal(readHome(none).start, `npm start -- ${files} --data ${none}/.sluice`);
  const noHost = { message: new RegExp(`with \`npm start -- ${files} --data ${none}/\\.sluice\`$`) };
  assert.throws(() => readHome(CLONE, join(none, ".sluice")), noHost);
  const start = JSON.stringify({ arguments: ["--nats-port", "4333", "--config", "my agents.yaml"] });
  const here = folder(t, { "agents.yaml": "deployment: acme", ".sluice/start.json": start });
  const again = "npm start -- --nats-port 4333 --config 'my agents.yaml'";
  const home = readHome(here);
  assert.equal(home.start, again);
  assert.throws(() => findNats({}, {}, home), { message: new RegExp(`with \`${again}\`, or .*--nats$`) });
  assert.throws(() => readHome(none, join(here, ".sluice")), { message: new RegExp(`with \`${again}\`$`) });
  const broken = folder(t, { ".sluice/start.json": '{"arguments":[1]}' });
  assert.equal(readHome(broken).start, `npm start -- --data ${broken}/.sluice`);
  assert.throws(() => readHome(none, "/none here"), { message: /with `npm start -- --data '\/none here'`$/ });
});

test("where a host was started and does not run, nothing is sent to the usual port unless that is named", (t) => {
  const dead = { "host.json": '{"pid":4194305,"nats":"nats://127.0.0.1:4333"}' };
  const left = { "start.json": '{"arguments":[]}' };
  for (const [name, text] of Object.entries({ ...dead, ...left }))
    for (const yaml of ["", "nats: { servers: [nats://127.0.0.1:4222] }"]) {
      const home = readHome(folder(t, { [`.sluice/${name}`]: text, "agents.yaml": yaml }));
      assert.throws(() => findNats({}, {}, home), {
        exitCode: 3,
        message:
          /^no local host runs in this folder, and at nats:\/\/127\.0\.0\.1:4222 there may be another's: /,
      });
      assert.equal(knownNats({ creds: "x" }, {}, home), undefined);
      const usual = ["nats://127.0.0.1:4222"];
      assert.deepEqual(findNats({ nats: "127.0.0.1:4222" }, {}, home).servers, usual);
      assert.deepEqual(findNats({}, { NATS_URL: "nats://127.0.0.1:4222" }, home).servers, usual);
    }
  const elsewhere = {
    ".sluice/start.json": '{"arguments":[]}',
    "agents.yaml": "nats: { servers: [nats://a:1] }",
  };
  assert.deepEqual(findNats({}, {}, readHome(folder(t, elsewhere))).servers, ["nats://a:1"]);
});

test("a host tells of which files its deployment was made, and those count, not the folder's", (t) => {
  const other = folder(t, {
    "mine.yaml": "deployment: other\nnats: { credentials: file:me.creds }",
    "bots/boom.ts": "",
  });
  const here = folder(t, { "agents.yaml": "deployment: acme", "agents/echo.ts": "" });
  const files = { config: join(other, "mine.yaml"), agentsDir: join(other, "bots") };
  const stack = { dynamodb: "http://127.0.0.1:1", s3: "http://127.0.0.1:2", table: "t", bucket: "b" };
  const running = (told: object) =>
    folder(t, { "host.json": JSON.stringify({ pid: process.pid, nats: "nats://a:1", ...stack, ...told }) });
  const outputs = { DeploymentName: "other" };
  const home = readHome(here, running({ files, outputs }));
  assert.deepEqual([home.deployment, home.agents, home.config], ["other", ["boom"], files.config]);
  assert.equal(home.operator.credentials, `file:${other}/me.creds`);
  assert.deepEqual(ownTarget(home, "boom"), { runtime: "other-boom", channelRef: "boom" });
  // One of an older version does not tell.
  assert.throws(() => readHome(here, running({ outputs })), {
    exitCode: 2,
    message: /^the local host on .* runs the deployment other, but .*agents\.yaml is of acme: /,
  });
  assert.equal(readHome(here, running({})).deployment, "acme");
  assert.equal(readHome(other, running({ outputs })).deployment, "other");
  assert.deepEqual(readFolder(here).agents, ["echo"]);
});

test("a task is meant by the beginning of its id, if no other begins so", () => {
  const keys = ["task_abc1", "task_abc2", "task_abc2", "task_abc", "other", "msg_x"];
  for (const [text, key] of [
    ["task_abc1", "task_abc1"],
    ["abc1", "task_abc1"],
    ["abc2", "task_abc2"],
    ["task_abc", "task_abc"],
    ["oth", "other"],
    ["msg", "msg_x"],
    ["none", "none"],
  ] as const)
    assert.equal(meant(text, keys), key);
  const rejected = keysOf("a2a.v1.event.acme-echo.acme-cli.msg_msg_1.rejected");
  const taskId = taskIdOf("acme-cli", "acme-echo", "msg_1");
  assert.equal(
    meant(taskId.slice(0, 12), rejected),
    taskId,
    "one that was rejected is known by its message alone",
  );
  assert.equal(meant("msg_msg", rejected), "msg_msg_1");
  assert.throws(() => meant("abc", keys), {
    exitCode: 2,
    message: /several begin so: task_abc, task_abc1, task_abc2$/,
  });
  const many = Array.from({ length: 6 }, (_, n) => `task_${n}`);
  assert.throws(() => meant("task", many), { message: /task_4, and 1 more$/ });
});

test("the name of a stack has 1 to 128 characters", () => {
  for (const name of ["a", `s${"-".repeat(127)}`]) assert.equal(stack(name), name);
  for (const name of ["", `s${"-".repeat(128)}`, "1a", "a_b", "a b"])
    assert.throws(() => stack(name), /Expected a stack's name/);
});

test("a running host tells how to log in to its NATS", (t) => {
  const host = {
    pid: process.pid,
    nats: "nats://a:1,nats://b:1",
    natsCredentials: "file:/x",
    natsCa: "/ca.pem",
  };
  const home = readHome(folder(t, { ".sluice/host.json": JSON.stringify(host) }));
  const own = { servers: ["nats://a:1", "nats://b:1"], credentials: "file:/x", ca: "/ca.pem" };
  assert.deepEqual(findNats({}, {}, home), own);
  assert.deepEqual(findNats({ nats: "b:1" }, {}, home), { ...own, servers: ["nats://b:1"] });
  assert.equal(findNats({ nats: "c:1" }, {}, home).credentials, "none");
});

test("the credentials of agents.yaml go to its own servers only", (t) => {
  const yaml = "nats: { servers: [nats://yaml:4222], credentials: file:me.creds, tls: { ca: file:ca.pem } }";
  const path = folder(t, { "agents.yaml": yaml });
  const home = readHome(path);
  const own = { servers: ["nats://yaml:4222"], credentials: `file:${path}/me.creds`, ca: `${path}/ca.pem` };
  assert.deepEqual(findNats({}, {}, home), own);
  assert.deepEqual(findNats({ nats: "yaml:4222" }, {}, home), own);
  assert.equal(findNats({ nats: "evil:4222" }, {}, home).credentials, "none");
  assert.equal(findNats({ nats: "evil:4222" }, {}, home).ca, undefined);
  assert.equal(findNats({ creds: "x.creds", nats: "evil:1" }, {}, home).credentials, "file:x.creds");
});

test("a wrong agents.yaml is named with its field", (t) => {
  const path = folder(t, { "agents.yaml": "deployment: [a]" });
  assert.throws(() => readHome(path), {
    message: `${path}/agents.yaml:1: deployment: expected 1 to 32 of A-Z, a-z, 0-9, _ and -, got a list of 1`,
    exitCode: 2,
  });
  const broken = folder(t, { "agents.yaml": "\na: [" });
  assert.throws(() => readHome(broken), { message: new RegExp(`^${broken}/agents.yaml:2: `), exitCode: 2 });
  const list = folder(t, { "agents.yaml": "- a" });
  assert.throws(() => readHome(list), { message: `${list}/agents.yaml:1: expected a map, got a list of 1` });
});

test("beside a running host doctor passes over a wrong agents.yaml, and the host tells the deployment", (t) => {
  const stack = { dynamodb: "http://127.0.0.1:1", s3: "http://127.0.0.1:2", table: "t", bucket: "b" };
  const host = { pid: process.pid, nats: "nats://a:1", ...stack, outputs: { DeploymentName: "acme" } };
  const broken = { "agents.yaml": "a: [", "agents/echo.ts": "" };
  const here = folder(t, { ...broken, ".sluice/host.json": JSON.stringify(host) });
  assert.throws(() => readHome(here), { exitCode: 2 });
  const home = readHome(here, undefined, { tolerant: true });
  assert.deepEqual([home.deployment, home.agents, home.host?.servers], ["acme", ["echo"], ["nats://a:1"]]);
  // Where none runs nobody tells of which deployment it is.
  assert.throws(() => readHome(folder(t, broken), undefined, { tolerant: true }), { exitCode: 2 });
});

test("the current folder counts when a deployment is there", (t) => {
  const here = folder(t, { "agents.yaml": "" });
  assert.equal(findHome(here, "/own"), here);
  assert.equal(readHome(here).deployment, "local");
  assert.equal(findHome(folder(t, {}), "/own"), "/own");
});

test("names of our own agents", () => {
  const home = { deployment: "acme", agents: ["digest", "acme-x"] };
  assert.deepEqual(ownTarget(home, "digest"), { runtime: "acme-digest", channelRef: "digest" });
  assert.deepEqual(ownTarget(home, "acme-digest"), { runtime: "acme-digest", channelRef: "digest" });
  assert.deepEqual(ownTarget(home, "acme-x"), { runtime: "acme-acme-x", channelRef: "acme-x" });
  assert.equal(ownTarget(home, "acme-"), null);
  assert.equal(ownTarget(home, "other"), null);
});

test("options at their bounds", () => {
  assert.equal(seconds("0.5"), 0.5);
  assert.equal(seconds(String(MAX_TIMEOUT_SEC)), MAX_TIMEOUT_SEC);
  for (const wrong of ["0", "-1", "", "x", "NaN", "Infinity", String(MAX_TIMEOUT_SEC + 1)])
    assert.throws(() => seconds(wrong), /Expected seconds/);
  assert.deepEqual([count("1"), count("999999")], [1, 999_999]);
  for (const wrong of ["0", "1000000", "1.5", "", "x"]) assert.throws(() => count(wrong), /whole number/);
});

test("what can be said of an agent", () => {
  const durable = { runtime: "acme-echo", pulling: 0, waiting: 1, unacknowledged: 1 };
  const card = { agentId: "acme-echo", description: "", skills: ["echo/task"], stale: false };
  const say = (of: { durable?: object; card?: object; ours?: boolean }) => {
    const own = of.ours === false ? [] : [{ id: "echo", runtime: "acme-echo" }];
    const [agent] = gather(
      own,
      of.card ? [{ ...card, ...of.card }] : [],
      of.durable ? [{ ...durable, ...of.durable }] : [],
    );
    assert(agent !== undefined);
    return stateOf(agent);
  };
  assert.equal(say({}), "not running");
  assert.equal(say({ durable: { pulling: 1 } }), "listening, 2 tasks wait");
  assert.equal(say({ durable: { pulling: 1, waiting: 0, unacknowledged: 0 } }), "listening");
  assert.equal(say({ durable: { waiting: 0 } }), "not listening now, 1 task waits");
  assert.equal(say({ card: {}, durable: {}, ours: false }), "shows a card, 2 tasks wait");
  assert.equal(say({ card: { stale: true }, ours: false }), "old card");
  const skillsOf = (own: Parameters<typeof gather>[0]) => gather(own, [card], [])[0]?.skills;
  assert.deepEqual(
    skillsOf([{ id: "echo", runtime: "acme-echo" }]),
    ["task"],
    "as those of agents with a file",
  );
  assert.equal(skillsOf([]), undefined);
});
