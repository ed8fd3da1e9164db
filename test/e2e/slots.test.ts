import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { jetstreamManager } from "@nats-io/jetstream";
import { awsSettings } from "../../infra/local/aws.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { type Sluice, startSluice } from "../support/sluice.ts";
import { until } from "../support/until.ts";

const NARROW = "acme-narrow";
const TASKS = 20;

const folder = mkdtempSync(join(tmpdir(), "sluice-slots-"));
let sluice: Sluice;
before(async () => {
  sluice = await startSluice();
  await ensureStreams(await jetstreamManager(sluice.peer.nc));
});
after(async () => {
  await sluice.stop();
  rmSync(folder, { recursive: true });
});

test("an agent with two slots works on twenty tasks, never on three at once", async () => {
  const file = join(folder, "log");
  const { peer } = sluice;
  const asked = await Promise.all(
    Array.from({ length: TASKS }, () =>
      peer.ask(NARROW, { channelRef: "narrow", a2a: { parts: [{ data: { file, workMs: 50 } }] } }),
    ),
  );
  for (const { taskId } of asked) {
    const events = await peer.outcome(taskId);
    assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
  }
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  assert.equal(lines.length, 2 * TASKS);
  let working = 0;
  let most = 0;
  for (const line of lines) {
    working += line.startsWith("begin") ? 1 : -1;
    most = Math.max(most, working);
  }
  assert.equal(most, 2);
});

test("it has a work function and a queue of its own, and a hint that lies in the others' queue gets there", async () => {
  const { host, peer, lines } = sluice;
  const pidsOf = (name: string) => host.functions().find((of) => of.name === name)?.pids.length ?? 0;
  assert.ok(pidsOf("work-narrow") > 0);
  assert.equal(pidsOf("work"), 0);
  // As if the task had been admitted before the agent got its function.
  const { taskId } = await peer.ask(NARROW, {
    channelRef: "narrow",
    a2a: { parts: [{ data: { file: join(folder, "other"), workMs: 50 } }] },
  });
  const client = new SQSClient(awsSettings(host.endpoints.sqs));
  const hint = JSON.stringify({ taskId: "task_nobody", epoch: 0, beat: 0, to: NARROW });
  await client.send(new SendMessageCommand({ QueueUrl: host.queueUrls.work, MessageBody: hint }));
  client.destroy();
  const events = await peer.outcome(taskId);
  assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
  await until("the others' function", () => pidsOf("work") > 0);
  const said = lines.filter((line) => /^work: .*"level":"(ERROR|WARN)"/.test(line));
  assert.deepEqual(said, []);
});
