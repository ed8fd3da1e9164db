import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Objm } from "@nats-io/obj";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { type Host, startHost } from "../../infra/local/host.ts";
import { synthesize } from "../../infra/synth.ts";
import { EVENTS_STREAM, ensureStreams } from "../../shared/nats/index.ts";
import { readEvent, type TaskEvent, taskMessage } from "../../shared/wire/index.ts";
import { startNats, type TestNats } from "../support/nats-server.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const AGENTS = join(ROOT, "test/fixtures/deployment/agents");
const folder = mkdtempSync(join(tmpdir(), "sluice-permissions-"));

let nats: TestNats;
let host: Host;
let adam: NatsConnection;
const lines: string[] = [];

/** A nats-server as docs/deploying.md sets it up, and a deployment under the user that it has there. */
before(async () => {
  const page = readFileSync(join(ROOT, "docs/deploying.md"), "utf8");
  const conf = /```conf\n([\s\S]*?)```/.exec(page)?.[1];
  assert.ok(conf);
  // The agent of the page that others ask is here the one that makes artifacts.
  writeFileSync(join(folder, "nats.conf"), conf.replaceAll("acme-support", "acme-maker"));
  nats = await startNats(["--config", join(folder, "nats.conf")]);
  const operator = await connect({ servers: nats.url, user: "operator", pass: "operator-password" });
  await ensureStreams(await jetstreamManager(operator));
  await new Objm(operator).create("a2a-artifacts");
  await operator.close();
  host = await startDeployment();
  adam = await connect({
    servers: nats.url,
    user: "adam",
    pass: "adam-password",
    inboxPrefix: "_INBOX_adam",
  });
});
after(async () => {
  await adam?.close();
  await host?.stop();
  await nats?.stop();
  rmSync(folder, { recursive: true });
});

async function startDeployment(): Promise<Host> {
  const agentsDir = join(folder, "agents");
  mkdirSync(agentsDir);
  for (const name of ["boss.ts", "maker.ts"]) copyFileSync(join(AGENTS, name), join(agentsDir, name));
  const agentsYaml = join(folder, "agents.yaml");
  const boss =
    "{ acceptFromRuntimes: [adam], delegateTargets: [{ runtimeAgentId: acme-maker, skillId: '*' }] }";
  writeFileSync(
    agentsYaml,
    `deployment: acme\nagents:\n  maker: { acceptFromRuntimes: [acme-boss] }\n  boss: ${boss}`,
  );
  const { assemblyDir } = await synthesize({ agentsDir, agentsYaml, outDir: join(folder, "out") });
  const credentials = join(folder, "acme.json");
  writeFileSync(credentials, '{"user": "acme", "password": "acme-password"}');
  return startHost({
    dataDir: join(folder, "data"),
    assemblyDir,
    nats: { servers: [nats.url], credentials: `file:${credentials}` },
    timeScale: 20,
    log: (event) =>
      lines.push(event.type === "line" ? `${event.functionName}: ${event.line}` : event.message),
  });
}

async function* events(): AsyncGenerator<TaskEvent> {
  const durable = "a2a_events_adam";
  const jsm = await jetstreamManager(adam, { checkAPI: false });
  const filter_subject = "a2a.v1.event.*.adam.>";
  await jsm.consumers.add(EVENTS_STREAM, {
    durable_name: durable,
    ack_policy: AckPolicy.Explicit,
    filter_subject,
  });
  const consumer = await jetstream(adam, { apiPrefix: "$JS.API" }).consumers.get(EVENTS_STREAM, durable);
  for (;;) {
    const message = await consumer.next({ expires: 10_000 });
    if (message === null) continue;
    message.ack();
    const read = readEvent(message.subject, message.data);
    assert.ok(read.ok);
    yield read.value;
  }
}

test("the users of docs/deploying.md may do what it takes: hand a task on, fetch and store artifacts", async () => {
  const a2a = { parts: [{ data: { to: "acme-maker", skill: "artifact", message: { bytes: 200_000 } } }] };
  const message = taskMessage({
    from: "adam",
    to: "acme-boss",
    messageId: "m1",
    request: { a2a, channelRef: "boss", skillId: "task", delivery: { maxDelegationDepth: 1 } },
    createdAt: new Date().toISOString(),
  });
  await jetstream(adam).publish(message.subject, message.body, { msgID: message.msgId });
  const kinds: string[] = [];
  for await (const { kind, state } of events()) {
    kinds.push(kind);
    if (kind !== "result" && kind !== "rejected") continue;
    assert.equal(state, "TASK_STATE_COMPLETED", lines.join("\n"));
    break;
  }
  assert.ok(kinds.includes("artifact"));
  // Whatever a function may not do, it says.
  assert.deepEqual(
    lines.filter((line) => /permissions violation|"level":"ERROR"/i.test(line)),
    [],
  );
});

test("nobody may speak for another", async () => {
  const forged = jetstream(adam, { timeout: 2_000 }).publish(
    "a2a.v1.event.acme-boss.adam.task_1.result",
    "{}",
  );
  await assert.rejects(forged);
});
