import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { bridgeAdvice } from "../../cli/doctor/bridge.ts";
import { checkNats } from "../../cli/doctor/nats.ts";
import { delegateFirstTask, whyGoOn } from "../../infra/local/first-task.ts";
import { progressOn } from "../../infra/local/progress.ts";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { loadAgents } from "../../shared/config/load-agents.ts";
import { timing } from "../../shared/config/timing.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { NATS_FUNCTIONS, type NatsUser, natsGrants } from "../../shared/nats/permissions.ts";
import type { TestNats } from "../support/nats-server.ts";
import { startConfiguredNats } from "../support/nats-users.ts";
import { run } from "./run.ts";

const cwd = mkdtempSync(join(tmpdir(), "sluice-refused-"));
let nats: TestNats;

/** A user with exactly these subjects. */
function user(name: string, functions: readonly NatsUser[], without = "-") {
  const grants = natsGrants({
    deployment: "acme",
    agents: [{ runtime: "acme-maker", delegates: false }],
    functions,
  }).filter(({ subject }) => !subject.startsWith(without));
  const of = (kind: string) => grants.filter((grant) => grant.kind === kind).map(({ subject }) => subject);
  // The page's example allows all inboxes of the deployment.
  const inboxes = name === "page" ? ["_INBOX_sluice-acme.>"] : [];
  const permissions = { publish: of("publish"), subscribe: [...of("subscribe"), ...inboxes] };
  writeFileSync(join(cwd, name), JSON.stringify({ user: name, password: name }));
  return { user: name, password: name, permissions };
}

before(async () => {
  writeFileSync(join(cwd, "agents.yaml"), "deployment: acme\nagents: { maker: {} }\n");
  nats = await startConfiguredNats({
    authorization: {
      users: [
        user("deployment", NATS_FUNCTIONS),
        user("page", NATS_FUNCTIONS),
        user("no-pull", ["command"], "$JS.API.CONSUMER.MSG.NEXT."),
        user("no-info", ["command"], "$JS.API.INFO"),
        { user: "admin", password: "admin" },
      ],
    },
  });
  const nc = await connect({ servers: nats.url, user: "admin", pass: "admin" });
  await ensureStreams(await jetstreamManager(nc));
  await nc.close();
});
after(async () => {
  await nats.stop();
  rmSync(cwd, { recursive: true });
});

const verb = (as: string, name: string, ...args: string[]) =>
  run([name, "--nats", nats.url, "--creds", join(cwd, as), ...args], { cwd });

const refused: readonly (readonly [string, readonly string[], RegExp])[] = [
  ["page", ["status"], /publish on "\$JS\.API\.CONSUMER\.CREATE\.A2A_EVENTS"; .*--function command/],
  ["page", ["ask", "maker", "hi", "--no-wait"], /publish on "a2a\.v1\.task\.acme-cli\.acme-maker\./],
  ["no-pull", ["watch"], /publish on "\$JS\.API\.CONSUMER\.MSG\.NEXT\.A2A_EVENTS\.[^"]+"; /],
];
for (const [as, [name = "", ...args], says] of refused)
  test(`the user ${as} is told what it lacks for ${[name, ...args].join(" ")}`, async () => {
    const { code, stderr } = await verb(as, name, ...args);
    assert.match(stderr, says);
    assert.match(stderr, /^sluice: NATS does not let this user /);
    assert.equal(code, 3);
  });

test("a stranger's inbox is told, too", async () => {
  writeFileSync(join(cwd, "agents.yaml"), "deployment: other\n");
  const { code, stderr } = await verb("deployment", "status");
  writeFileSync(join(cwd, "agents.yaml"), "deployment: acme\nagents: { maker: {} }\n");
  assert.match(stderr, /subscribe to "_INBOX_sluice-other\.command\.[^"]+"; /);
  assert.equal(code, 3);
});

test("doctor says what it may not ask, and looks at the rest", async () => {
  const look = async (as: string) => {
    const where = { servers: [nats.url], credentials: `file:${join(cwd, as)}` };
    const bridge = bridgeAdvice(undefined);
    const expected = { deployment: "acme", runtimes: [], timing: timing(), bridge };
    return checkNats(where, expected);
  };
  const findings = await look("no-info");
  const [account, ...others] = findings.filter(({ level }) => level !== "ok");
  assert.deepEqual(
    [account?.part, account?.says, others],
    ["JetStream", 'cannot be asked: NATS does not let this user publish on "$JS.API.INFO"', []],
  );
  assert.match(account?.todo ?? "", /--creds.*nats-permissions --function command/);
  assert.ok(findings.some(({ part }) => part === "stream A2A_EVENTS"));
  const deaf = (await look("deployment")).filter(({ level }) => level !== "ok");
  assert.deepEqual(
    deaf.map(({ part }) => part),
    ["JetStream"],
  );
  assert.match(deaf[0]?.says ?? "", /subscribe to "_INBOX_sluice-acme\.command\./);
});

test("the first task says at once what its user may not do, though the streams are there", async () => {
  const folder = join(import.meta.dirname, "../fixtures/deployment");
  const agents = await loadAgents(join(folder, "agents"));
  const { deployment } = readAgentsYaml(join(folder, "agents.yaml"), agents);
  const sent = delegateFirstTask({
    host: { endpoints: { nats: nats.url, dynamodb: "", s3: "", sqs: "" } },
    deployment,
    credentials: `file:${join(cwd, "deployment")}`,
    ca: undefined,
    logsDir: "logs",
    progress: progressOn(process.stderr),
    signal: AbortSignal.timeout(60_000),
  });
  await assert.rejects(sent, (error: unknown) => {
    const words = whyGoOn(error) ?? "";
    return /subscribe to "_INBOX_sluice-acme\.start\..*; give it what .*--local/.test(words);
  });
});
