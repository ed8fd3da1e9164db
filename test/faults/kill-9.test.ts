import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { jetstreamManager } from "@nats-io/jetstream";
import * as z from "zod";
import { awsSettings } from "../../infra/local/aws.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import { kill9 } from "../support/kill-9.ts";
import { startNats } from "../support/nats-server.ts";
import { Peer } from "../support/peer.ts";
import { SENDER, testAssembly } from "../support/sluice.ts";
import {
  assertStoredOnce,
  assertWhole,
  readTraces,
  STEPPER,
  type Stage,
  type Steps,
  startStage,
  type Trace,
} from "../support/stage.ts";
import { inTime, until } from "../support/until.ts";

const SCALE = 60;
/** Slow enough to be caught in the middle. */
const SLOW: Steps = { steps: 5, stepMs: 300 };

let stage: Stage;
before(async () => {
  stage = await startStage({ timeScale: SCALE });
});
after(() => stage.stop());

/** The run of the third step, while it is under way. */
function inTheMiddle(traces: () => Trace[]): Promise<Trace> {
  return until("the third step runs", () => traces().find(({ step }) => step === "step 3"), { seen: traces });
}

/** Starts nats-server again, and waits until the peer is connected with it. */
async function restartNats(): Promise<void> {
  const { nats, peer } = stage.sluice;
  await nats.restart();
  await until("the peer is connected again", () =>
    jetstreamManager(peer.nc, { timeout: 500 }).then(
      () => true,
      () => false,
    ),
  );
}

async function assertRight(taskId: string): Promise<void> {
  const events = await stage.sluice.peer.outcome(taskId);
  assertWhole(events);
  assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
  await stage.drained();
  assert.equal((await stage.sluice.peer.events(taskId)).length, events.length, "nothing follows the end");
  assertStoredOnce(await stage.store.entries(taskId, 1), stage.traces(taskId));
}

test("a task goes on after kill -9 of its worker", async () => {
  const { taskId } = await stage.step(SLOW);
  const { pid } = await inTheMiddle(() => stage.traces(taskId));
  kill9(pid);
  await assertRight(taskId);
  const pids = stage.traces(taskId).flatMap((trace) => (trace.step === "step 3" ? [trace.pid] : []));
  assert.ok(new Set(pids).size > 1, "the step that was under way has run again in another process");
});

test("a task goes on after kill -9 of nats-server", async () => {
  const { taskId } = await stage.step(SLOW);
  await inTheMiddle(() => stage.traces(taskId));
  await stage.sluice.nats.kill("SIGKILL");
  await until("a step runs without NATS", () => stage.traces(taskId).some(({ step }) => step === "step 4"));
  await restartNats();
  await assertRight(taskId);
});

test("a task that comes while NATS restarts, and one whose worker dies meanwhile, go on", async () => {
  const { taskId } = await stage.step(SLOW);
  const { pid } = await inTheMiddle(() => stage.traces(taskId));
  await stage.sluice.nats.kill("SIGKILL");
  kill9(pid);
  await restartNats();
  const next = await stage.step();
  await assertRight(taskId);
  await assertRight(next.taskId);
});

test("a task goes on after kill -9 of the host and a new one on its data", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-host-"));
  const nats = await startNats();
  const peer = await Peer.connect(nats.url, SENDER);
  await ensureStreams(await jetstreamManager(peer.nc));
  const assembly = await testAssembly();
  let host = await startHostProcess(dataDir, assembly, nats.url);
  t.after(async () => {
    host.kill("SIGTERM");
    await once(host, "exit");
    await peer.close();
    await nats.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const file = join(dataDir, "steps.jsonl");
  const a2a = { parts: [{ data: { file, ...SLOW } }] };
  const { taskId } = await peer.ask(STEPPER, { a2a, channelRef: "stepper" });
  await inTheMiddle(() => readTraces(file));
  host.kill("SIGKILL");
  await once(host, "exit");
  host = await startHostProcess(dataDir, assembly, nats.url);

  const events = await peer.outcome(taskId);
  assertWhole(events);
  assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
  assertStoredOnce(await journalOf(dataDir, taskId), readTraces(file));
});

async function startHostProcess(dataDir: string, assembly: string, natsUrl: string): Promise<ChildProcess> {
  const main = join(import.meta.dirname, "../support/host-main.ts");
  const host = spawn(process.execPath, [main, dataDir, assembly, natsUrl, String(SCALE)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await inTime("the host is ready", once(host.stdout, "data"));
  return host;
}

const hostFile = z.object({ dynamodb: z.string(), table: z.string() });

async function journalOf(dataDir: string, taskId: string) {
  const { dynamodb, table } = hostFile.parse(JSON.parse(readFileSync(join(dataDir, "host.json"), "utf8")));
  const client = new DynamoDBClient(awsSettings(dynamodb));
  const store = dynamoStore({ client: DynamoDBDocumentClient.from(client), table });
  return await store.entries(taskId, 1).finally(() => client.destroy());
}
