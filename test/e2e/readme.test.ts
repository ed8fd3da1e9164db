import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTcpServer, type Server } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { parse } from "yaml";
import * as z from "zod";
import { ROOT } from "../../infra/bundle.ts";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { loadAgents } from "../../shared/config/load-agents.ts";
import { Clone, type Finished, type Typed } from "../support/clone.ts";
import { until } from "../support/until.ts";

const UP_WITHIN_MS = 180_000;
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
const readme = read("README.md");
const onAgents = read("docs/agents.md");
const onCommand = read("docs/command.md");

/** The fenced blocks of a page in one language. */
const blocks = (page: string, language: string) =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].map(([, text = ""]) => text);

/** The command lines of a page, without their comments. */
const commands = (page: string) =>
  blocks(page, "sh").flatMap((block) =>
    block
      .split("\n")
      .map((line) => line.replace(/\s+#.*$/, "").trim())
      .filter((line) => line !== ""),
  );

/** How a command of a page ends, and what it must have said. */
interface Expected {
  readonly code?: number;
  readonly says: RegExp;
  /** What a reader would add who does not want to wait. */
  readonly add?: string;
}
const DIGESTED =
  /^sent .*\naccepted +task_[0-9a-f]{24}\n(.*\n)*artifact +report\.json .*\n(.*\n)*completed\n(.*\n)*sha256 [0-9a-f]{64}\n$/;
const EXPECTED: Readonly<Record<string, Expected>> = {
  "./sluice agents": { says: /^digest +local-digest +listening(.*\n)*echo +local-echo +listening/m },
  './sluice ask digest "any text, or JSON"': { says: DIGESTED },
  './sluice ask digest "Twelve green bottles, hanging on the wall"': { says: DIGESTED },
  './sluice ask relay "local-digest Twelve green bottles"': { says: DIGESTED },
  "./sluice ask exec date": { says: /^completed\ndate: exit code 0\n.*UTC/m },
  "./sluice status": { says: /^task_[0-9a-f]{24} +completed +local-(exec|weather) /m },
  "./sluice doctor": { says: /^ok +NATS: reached (.*\n)*ok +queue work: holds /m },
  "./sluice dead list": { says: /^no dead letters\n$/ },
  "./sluice ask greeter Ada": {
    says: /^artifact +card\.txt +text\/plain +12 bytes(.*\n)*completed\nHello, Ada!\n$/m,
  },
  './sluice ask digest "Twelve green bottles"': { says: DIGESTED },
  './sluice ask local-digest "Twelve green bottles"': { says: DIGESTED },
  "./sluice ask digest --file report.json": { says: /^completed\nJSON object, 2 levels deep/m },
  "df -h | ./sluice ask digest --file -": { says: DIGESTED },
  './sluice ask adam-lobby-1a2b3c4d "Are you there?"': { code: 2, says: /no agent "adam-lobby-1a2b3c4d"/ },
  './sluice ask "Front desk" "Are you there?"': { code: 2, says: /no agent "Front desk"/ },
  "./sluice peers": { says: /nobody|no peers|PEER/i },
  "./sluice nats-permissions": { says: /^MAY +SUBJECT +/ },
  "./sluice nats-permissions --format server": { says: /^\{\n {2}user: "sluice-local"/ },
  "./sluice nats-permissions --format nsc": { says: /^nsc add user --name 'sluice-local' / },
  "./sluice nats-permissions --agent relay --function work": { says: /a2a\.v1\.task\.local-relay\.>/ },
  "./sluice nats-permissions --function command": { says: /_INBOX_sluice-local\.command\.>/ },
  "./sluice nats-permissions --local": { says: /_INBOX_sluice-local\.start\.>/ },
  // No person is at a terminal here: it must not be sent.
  './sluice ask eve-room --channel room "Are you there?"': {
    code: 2,
    says: /^sluice: token_missing: eve-room is outside of the deployment local/m,
  },
  "./sluice ask weather --file question.json": { says: /^completed\nIt is 7 degrees celsius in Oslo\.\n$/m },
  './sluice ask weather \'{ "city": "Oslo" }\'': {
    says: /^artifact +reading\.json .*\n(.*\n)*completed\nIt is 7 degrees celsius in Oslo\.\n$/m,
  },
};

test("the first commands are those that CI and package.json know", () => {
  const { scripts } = z
    .looseObject({ scripts: z.record(z.string(), z.string()) })
    .parse(parse(read("package.json")));
  assert.deepEqual(commands(readme).slice(0, 2), ["npm ci && npm start", "npm ci && npm test"]);
  assert.ok(scripts.start !== undefined && scripts.test !== undefined);
  const ci = read(".ci/run").split("\n");
  for (const step of ["npm ci", "npm test"]) assert.ok(ci.includes(step), step);
  for (const option of ["--once", "--help"]) assert.ok(readme.includes(`\`npm start -- ${option}\``), option);
  assert.match(readme, /`npx cdk synth`/);
});

test("the examples of docs/agents.md for agents.yaml are read without a complaint", async () => {
  const agents = await loadAgents(join(ROOT, "agents"));
  const examples = blocks(onAgents, "yaml");
  assert.ok(examples.length >= 3);
  for (const example of examples)
    readAgentsYaml("agents.yaml", agents, () => `deployment: local\n${example}`);
});

describe("a new user, with Node 20", () => {
  let clone: Clone;
  before(() => {
    clone = new Clone();
  });
  after(() => clone[Symbol.dispose]());

  /** Runs command lines of a page, each as it stands there. */
  async function follow(lines: readonly string[]): Promise<void> {
    for (const line of lines) {
      const expected = EXPECTED[line];
      assert.ok(expected !== undefined, `a command without an expectation: ${line}`);
      const { code = 0, says, add } = expected;
      const { code: exitCode, said } = await clone.run(add === undefined ? line : `${line} ${add}`);
      assert.equal(exitCode, code, `${line}\n${said}`);
      assert.match(said, says, line);
      assert.doesNotMatch(said, /Warning/, line);
    }
  }

  /** `npm start`, until it says what to type next. */
  async function start(): Promise<Typed> {
    const host = clone.type(await startLine());
    const isUp = () => host.said().includes("Ctrl-C stops it") || !host.isRunning();
    await until("npm start is up", isUp, { withinMs: UP_WITHIN_MS, seen: host.said });
    assert.ok(host.isRunning(), host.said());
    assert.doesNotMatch(host.said(), /Warning|\n! /);
    return host;
  }

  async function stop(host: Typed): Promise<void> {
    host.ctrlC();
    await host.finished;
    await nothingRuns();
  }

  const nothingRuns = () =>
    until("no process is left", () => clone.processes().length === 0, { seen: () => clone.processes() });

  test("npm start brings everything up, and the commands do what is said of them", async () => {
    clone.write("report.json", '{ "pages": [1, 2], "title": "Bottles" }\n');
    const host = await start();
    assert.match(
      host.said(),
      /synthesizing the stack …\n(.*\n)*starting NATS …\n(.*\n)*starting the functions …\n/,
    );
    assert.match(
      host.said(),
      /accepted +task_\w+\n(.*\n)*.*working .*\n(.*\n)*.*artifact .*\n(.*\n)*.*completed/,
    );
    const told = [...host.said().matchAll(/^ {2}(\.\/sluice .*)$/gm)].map(([, line = ""]) => line);
    assert.ok(told.length > 0, host.said());
    const asking = commands(readme).filter(
      (line) => line.startsWith("./sluice") && !line.includes("greeter"),
    );
    await follow([...told, ...asking]);
    const verbs = commands(onCommand).filter((line) => line.includes("./sluice"));
    await follow(verbs);

    const bin = join(clone.folder, "bin");
    mkdirSync(bin);
    symlinkSync(join(clone.path, "sluice"), join(bin, "sluice"));
    const elsewhere = await clone.run("bin/sluice ask echo 'from elsewhere'", clone.folder);
    assert.deepEqual([elsewhere.code, elsewhere.said.endsWith("completed\nfrom elsewhere\n")], [0, true]);
    await stop(host);
    const { code, said } = await clone.run("./sluice ask echo hi --nats 127.0.0.1:1");
    assert.deepEqual([code, /cannot reach NATS.*see that a server runs there/.test(said)], [3, true], said);
  });

  test("the first agent, and that of docs/agents.md, are asked after a restart", async (t) => {
    const [, file = "", source = ""] =
      /Put this into `(agents\/\w+\.ts)`:\n\n```ts\n(.*?)```/s.exec(readme) ?? [];
    assert.equal(file, "agents/greeter.ts");
    clone.write(file, source);
    const weather = createServer((_, answer) => answer.end('{ "celsius": 7 }')).listen(0, "127.0.0.1");
    t.after(() => weather.close());
    await once(weather, "listening");
    const [example = ""] = blocks(onAgents, "ts");
    assert.ok(example.includes("https://weather.example/"));
    const url = `http://127.0.0.1:${portOf(weather)}/`;
    clone.write("agents/weather.ts", example.replace("https://weather.example/", url));
    clone.write("question.json", '{ "city": "Oslo" }');

    const host = await start();
    await follow(commands(readme).filter((line) => line.includes("greeter")));
    await follow(commands(onAgents).filter((line) => line.startsWith("./sluice")));
    await stop(host);
  });

  test("npm start -- --once does the same, stops, and exits 0", async () => {
    const { code, said } = await clone.run(await startLine("--silent", "--once"));
    assert.equal(code, 0, said);
    assert.match(said, /^ {2}accepted (.*\n)* {2}completed/m);
    assert.doesNotMatch(said, /npm start|Warning/);
    await nothingRuns();
  });

  test("--once exits 1 with the reason when something is wrong, and leaves nothing", async (t) => {
    const taken = createTcpServer().listen(0, "127.0.0.1");
    t.after(() => taken.close());
    await once(taken, "listening");
    const port = portOf(taken);
    const fails = async (run: Promise<Finished>, reason: RegExp) => {
      const { code, said } = await run;
      assert.equal(code, 1, said);
      assert.match(said, reason);
      await nothingRuns();
    };
    await fails(
      clone.run(`npm start -- --once --nats-port ${port}`),
      new RegExp(`^port ${port} \\(NATS\\) is taken by another process`, "m"),
    );
    clone.write("broken.yaml", "deployment: local\nagents:\n  digest:\n    maxQueued: none\n");
    await fails(
      clone.run("npm start -- --once --config broken.yaml"),
      /broken\.yaml:4: agents\.digest\.maxQueued: /,
    );
    const throwing = read("agents/digest.ts").replace(
      "async run(task, step) {",
      '$&\nthrow new Error("no ink");',
    );
    clone.write("agents/digest.ts", throwing);
    await fails(clone.run(await startLine("--once")), /^ {2}failed +internal: Error: no ink$/m);
    clone.write("agents/digest.ts", "export default {");
    await fails(clone.run(await startLine("--once")), /digest\.ts/);
  });

  test("npm start -- --help tells what is possible", async () => {
    const { code, said } = await clone.run("npm start -- --help");
    assert.equal(code, 0);
    const page = read("docs/local-host.md");
    for (const [option] of page.matchAll(/(?<=`)--[a-z-]+/g)) assert.ok(said.includes(option), option);
    for (const [option] of said.matchAll(/(?<=^ +(?:-\w, )?)--[a-z-]+/gm))
      assert.ok(option === "--help" || page.includes(option), `${option} is not in docs/local-host.md`);
  });
});

/** `npm start` as it is printed; only where the usual port is taken, at another. */
async function startLine(...options: string[]): Promise<string> {
  const forNpm = options.filter((option) => option === "--silent");
  const forSluice = options.filter((option) => option !== "--silent");
  if (!(await isFree(4222))) forSluice.push("--nats-port", "0");
  const rest = forSluice.length === 0 ? [] : ["--", ...forSluice];
  return ["npm start", ...forNpm, ...rest].join(" ");
}

async function isFree(port: number): Promise<boolean> {
  const server = createTcpServer();
  try {
    await once(server.listen(port, "127.0.0.1"), "listening");
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

function portOf(server: Pick<Server, "address">): number {
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return address.port;
}
