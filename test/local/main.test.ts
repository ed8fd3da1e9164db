import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { startCommand } from "../../cli/start-again.ts";
import { findNatsServer } from "../../infra/local/nats-server.ts";
import { freePort } from "../../infra/local/ports.ts";
import { startConfiguredNats } from "../support/nats-users.ts";
import { temporaryFolder } from "./support/assembly.ts";
import { eventually, isAlive, processesOf } from "./support/host.ts";

const OPENSSL = "openssl";
const MAIN = fileURLToPath(new URL("../../infra/local/main.ts", import.meta.url));

interface Run {
  readonly child: ChildProcess;
  readonly dataDir: string;
  /** What it has said so far, on both streams. */
  said(): string;
  /** Waits for its end. */
  ended(): Promise<number | NodeJS.Signals | null>;
}

/** Where a stack has been synthesized already, which is used again as long as agents and `agents.yaml` are the same. */
const USED = temporaryFolder("the main");

/** `npm start -- …`, in a pipe, with a data folder of its own. */
const startAfresh = (t: test.TestContext, ...args: string[]) => start(t, temporaryFolder("main"), ...args);

/** `npm start -- --data … …`, in a pipe. */
function start(t: test.TestContext, dataDir: string, ...args: string[]): Run {
  const child = spawn(process.execPath, [MAIN, "--data", dataDir, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  t.after(() => child.kill("SIGKILL"));
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (said += chunk));
  const end = once(child, "close");
  return {
    child,
    dataDir,
    said: () => stripVTControlCharacters(said),
    ended: async () => {
      const [code, signal] = await end;
      return code ?? signal;
    },
  };
}

test("--once delegates a task to digest, shows every event, stops, and leaves nothing", async (t) => {
  const run = start(t, USED, "--once", "--nats-port", "0");
  assert.equal(await run.ended(), 0, run.said());
  const said = run.said();
  assert.match(said, /synthesizing the stack …\n(.*\n)*starting NATS …\n/);
  assert.match(
    said,
    /accepted +task_[0-9a-f]{24}\n(.*\n)*.*working.*\n(.*\n)*.*artifact.*\n(.*\n)*.*completed/,
  );
  assert.deepEqual(processesOf(run.dataDir), []);
  assert.ok(readdirSync(join(run.dataDir, "logs")).includes("bridge.log"));
});

test("a NATS server that is there already is used, with its password and its own authority's certificate", async (t) => {
  const nats = await secureNatsServer(t);
  if (nats === undefined) return t.skip("no openssl here to make a certificate with");
  const given = ["--nats", nats.url, "--creds", nats.credentials];
  const trusting = start(t, USED, "--once", ...given, "--ca", nats.ca);
  assert.equal(await trusting.ended(), 0, trusting.said());
  assert.doesNotMatch(trusting.said(), /starting NATS/);
  const wary = start(t, USED, "--once", ...given);
  assert.equal(await wary.ended(), 1);
  assert.match(wary.said(), /tls:\/\/localhost:\d+ cannot be reached.*certificate/);
});

test("a NATS user who may not make the streams ends it, with what to do", async (t) => {
  const permissions = { publish: { allow: [">"], deny: ["$JS.API.STREAM.CREATE.>"] } };
  const login = { user: "tester", password: "secret" };
  const nats = await startConfiguredNats({ authorization: { users: [{ ...login, permissions }] } });
  t.after(() => nats.stop());
  const creds = join(temporaryFolder("login"), "login.json");
  writeFileSync(creds, JSON.stringify(login));
  const run = start(t, USED, "--nats", nats.url, "--creds", creds);
  assert.equal(await run.ended(), 1, run.said());
  assert.match(
    run.said(),
    /\n! bridge: NatsError: the stream A2A_\w+ does not exist(.*\n)*the stream A2A_TASKS does not exist, and this user may not make it; make it as docs\/deploying\.md says\n$/,
  );
});

test("it says what to do next and stays up until Ctrl-C, which leaves nothing; the next start goes on", async (t) => {
  const run = start(t, USED, "--nats-port", "0");
  await eventually(() => run.said().includes("Ctrl-C stops it") || run.child.exitCode !== null);
  assert.match(
    run.said(),
    /the next start continues where it stopped, with agents and agents\.yaml as they are/,
  );
  const told = JSON.parse(readFileSync(join(run.dataDir, "host.json"), "utf8"));
  assert.match(
    run.said(),
    new RegExp(`NATS at ${told.nats}(.*\\n)+.*\\./sluice ask digest .* --data-folder '${run.dataDir}'\\n`),
  );
  assert.deepEqual(Object.keys(told.files), ["config", "agentsDir"]);
  assert.equal(told.outputs.NatsServers, told.nats);
  const processes = processesOf(run.dataDir);
  assert.ok(processes.length >= 2);
  run.child.kill("SIGINT");
  assert.equal(await run.ended(), 0);
  assert.deepEqual(processes.filter(isAlive), []);
  // How it was started is known when it runs no more.
  assert.equal(startCommand(USED), `npm start -- --data '${USED}' --nats-port 0`);
});

/** An agent that takes its time to be loaded, whom nobody may ask. */
function slowAgent(): string[] {
  const folder = temporaryFolder("agents");
  writeFileSync(
    join(folder, "slow.ts"),
    `import { defineAgent, skill } from "sluice";
     import * as z from "zod";
     await new Promise((done) => setTimeout(done, 2_500));
     const task = skill({ name: "Wait", description: "Waits", input: z.string(), run: () => "waited" });
     export default defineAgent({ id: "slow", description: "Waits", skills: { task } });`,
  );
  writeFileSync(join(folder, "other.js"), "");
  const config = join(folder, "agents.yaml");
  writeFileSync(config, "deployment: local\ndefaults: { acceptFrom: [adam-lobby] }\n");
  return ["--nats-port", "0", "--agents-dir", folder, "--config", config];
}

test("a signal that comes while the functions start stops it; without anybody for the first task --once fails", {
  timeout: 120_000,
}, async (t) => {
  const options = slowAgent();
  const run = startAfresh(t, ...options);
  await eventually(() => run.said().includes("starting the functions"));
  run.child.kill("SIGINT");
  assert.equal(await run.ended(), 130);
  assert.deepEqual(processesOf(run.dataDir), []);
  const again = start(t, run.dataDir, ...options, "--once");
  assert.equal(await again.ended(), 1);
  assert.match(
    again.said(),
    /\nnote: \/.*\/other\.js: is not loaded: .*\nnote: \/.*agents\.yaml:2: defaults\.acceptFrom: legacy; write (.*\n)+No first task: agent "slow" does not accept tasks from local-cli \(agents\.yaml/,
  );
});

test("a second signal ends everything at once, even while it starts", async (t) => {
  const run = start(t, USED, "--nats-port", "0");
  await eventually(() => processesOf(run.dataDir).length > 0);
  run.child.kill("SIGTERM");
  run.child.kill("SIGINT");
  assert.equal(await run.ended(), 130);
  await eventually(() => processesOf(run.dataDir).length === 0);
});

test("a second signal while the stack is synthesized leaves neither a process nor a folder", async (t) => {
  const agents = temporaryFolder("agents");
  const pidFile = join(agents, "pid");
  writeFileSync(
    join(agents, "slow.ts"),
    `import { writeFileSync } from "node:fs";
     writeFileSync(${JSON.stringify(pidFile)}, String(process.pid));
     await new Promise((done) => setTimeout(done, 600_000));`,
  );
  const run = startAfresh(t, "--nats-port", "0", "--agents-dir", agents);
  const pid = await eventually(() => existsSync(pidFile) && Number(readFileSync(pidFile, "utf8")));
  run.child.kill("SIGINT");
  run.child.kill("SIGTERM");
  assert.equal(await run.ended(), 130);
  await eventually(() => !isAlive(Number(pid)));
  assert.deepEqual(
    readdirSync(run.dataDir).filter((name) => name.includes("cdk.out")),
    [],
  );
});

test("a port that is taken ends it in words, with nothing left", async (t) => {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const run = start(t, USED, "--nats-port", String(address.port));
  assert.equal(await run.ended(), 1);
  assert.match(
    run.said(),
    new RegExp(`port ${address.port} \\(NATS\\) is taken by another process; .*--nats-port N`),
  );
  assert.deepEqual(processesOf(run.dataDir), []);
});

test("a mistake in agents.yaml ends it with file, line and field", async (t) => {
  const config = join(temporaryFolder("config"), "agents.yaml");
  writeFileSync(config, "deployment: local\nagents:\n  echo:\n    maxConcurrent: many\n");
  const run = startAfresh(t, "--config", config);
  assert.equal(await run.ended(), 1);
  assert.match(run.said(), /agents\.yaml:4.*maxConcurrent/);
});

test("options that make no sense end it with 2 and say what was expected", async (t) => {
  const cases = [
    [["--nats-port", "65536"], /Expected a port/],
    [["--time-scale", "0.5"], /Expected a number of at least 1/],
    [["--time-scale", ""], /Expected a number of at least 1/],
    [["--creds", "x"], /--creds and --ca are for the server that --nats names/],
    [["--nats", "127.0.0.1:1", "--creds", "secret:x"], /--creds: secrets are .* expected a file here/],
    [["--nats", "x", "--nats-port", "1"], /cannot be used with option '--nats/],
    [["--nats", "nats://127.0.0.1:99999"], /--nats: expected a URL .* port of at most 65535/],
    [["--nats", "nats://alice:hunter,2@127.0.0.1:4222"], /--nats: expected a URL without user and password/],
    [["--config", "nope.yaml"], /^error: --config: there is no file nope\.yaml\n/],
    [["--config", import.meta.dirname], /^error: --config: there is no file \//],
    [["--nats", "127.0.0.1:1", "--creds", "nope"], /^error: --creds: there is no file nope\n/],
    [["--nats", "127.0.0.1:1", "--ca", "nope.pem"], /^error: --ca: there is no file nope\.pem\n/],
    [["--agents-dir", "nope"], /^error: --agents-dir: there is no folder nope\n/],
    [["--agents-dir", MAIN], /^error: --agents-dir: there is no folder \/.*main\.ts\n/],
    [["--nothing"], /unknown option '--nothing'/],
  ] as const;
  const runs = cases.map(([args, message]) => ({ run: startAfresh(t, ...args), message }));
  for (const { run, message } of runs) {
    assert.equal(await run.ended(), 2);
    assert.match(run.said(), message);
    assert.doesNotMatch(run.said(), /hunter/);
  }
});

/** A nats-server with TLS and a password; undefined where no certificate can be made. */
async function secureNatsServer(t: test.TestContext) {
  const folder = temporaryFolder("tls");
  const path = (name: string) => join(folder, name);
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const keys = [
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-keyout",
    path("key.pem"),
    "-out",
    path("cert.pem"),
    "-days",
    "2",
  ];
  if (spawnSync(OPENSSL, ["req", "-x509", ...keys, ...names]).status !== 0) return undefined;
  const port = await freePort();
  writeFileSync(
    path("nats.conf"),
    `listen: 127.0.0.1:${port}
jetstream { store_dir: ${JSON.stringify(path("js"))} }
tls { cert_file: ${JSON.stringify(path("cert.pem"))}, key_file: ${JSON.stringify(path("key.pem"))} }
authorization { user: tester, password: secret }\n`,
  );
  writeFileSync(path("login.json"), JSON.stringify({ user: "tester", password: "secret" }));
  const server = spawn(await findNatsServer(), ["-c", path("nats.conf")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  t.after(() => server.kill("SIGKILL"));
  let log = "";
  server.stderr.on("data", (chunk) => (log += chunk));
  await eventually(() => log.includes("Server is ready"));
  return { url: `tls://localhost:${port}`, credentials: path("login.json"), ca: path("cert.pem") };
}
