import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import * as z from "zod";
import { ROOT } from "../../infra/bundle.ts";
import { synthesize } from "../../infra/synth.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { type ControlKind, controlMessage, type TaskState } from "../../shared/wire/index.ts";
import { kill9, wholeLines } from "../support/kill-9.ts";
import { SENDER, type Sluice, startSluice } from "../support/sluice.ts";
import { assertWhole } from "../support/stage.ts";
import { until } from "../support/until.ts";

const TEXT = "A lease lasts a minute.\n\nThe worker renews its lease.\n\nEach worker has a lease of its own.";

const folder = mkdtempSync(join(tmpdir(), "sluice-agents-"));
const log = join(folder, "log");
let asked = 0;
/** The first who asks gets no answer: its worker is killed. */
const server = createServer((request, answer) => {
  if (request.url === "/v1/chat/completions") void model(request, answer);
  else if (++asked > 1) answer.end(TEXT);
  else killWorkers();
});

const KEY = "sk-e2e-0123456789";
/** Which turns the model was asked for, by how much it had said before. */
const turns: number[] = [];

/** A model behind an OpenAI-compatible interface: it calculates, then answers. The first who wants the answer dies. */
async function model(request: IncomingMessage, answer: ServerResponse): Promise<void> {
  const { messages } = chat.parse(await json(request));
  const turn = messages.filter(({ role }) => role === "assistant").length + 1;
  assert.equal(request.headers.authorization, `Bearer ${KEY}`);
  turns.push(turn);
  if (turn === 2 && turns.length === 2) return killWorkers();
  const called = { name: "calculate", arguments: JSON.stringify({ expression: "6*7" }) };
  const message =
    turn === 1
      ? { role: "assistant", content: null, tool_calls: [{ id: "c1", type: "function", function: called }] }
      : { role: "assistant", content: `It is ${messages.at(-1)?.content}.` };
  answer.setHeader("content-type", "application/json").end(
    JSON.stringify({
      choices: [{ index: 0, message, finish_reason: turn === 1 ? "tool_calls" : "stop" }],
      usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
    }),
  );
}

const chat = z.object({ messages: z.array(z.object({ role: z.string(), content: z.unknown() })) });
let sluice: Sluice;

before(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  writeFileSync(join(folder, "key"), KEY);
  writeFileSync(
    join(folder, "agents.yaml"),
    JSON.stringify({
      deployment: "acme",
      defaults: { acceptFromRuntimes: [SENDER] },
      agents: {
        research: { hosts: [host()] },
        llm: {
          model: {
            provider: "openai-compatible",
            baseUrl: `http://${host()}/v1`,
            name: "small",
            apiKey: `file:${join(folder, "key")}`,
          },
        },
        "deploy-gate": {
          graceSec: 2,
          targets: { shop: ["sh", "-c", `echo "$PPID $SLUICE_TASK" >> ${log}; sleep 1; echo up`] },
        },
      },
    }),
  );
  const { assemblyDir } = await synthesize({
    agentsDir: join(ROOT, "agents"),
    agentsYaml: join(folder, "agents.yaml"),
    outDir: join(folder, "assembly"),
  });
  sluice = await startSluice({ assemblyDir, timeScale: 60 });
  await ensureStreams(await jetstreamManager(sluice.peer.nc));
});
after(async () => {
  await sluice.stop();
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

function host(): string {
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return `127.0.0.1:${address.port}`;
}

function killWorkers(): void {
  const { pids } = sluice.host.functions().find(({ name }) => name === "work") ?? { pids: [] };
  for (const pid of pids) kill9(pid);
}

/** What the command has left: its worker, and the task that it was told. */
const deployments = () => {
  try {
    return wholeLines(readFileSync(log, "utf8")).map((line) => line.split(" "));
  } catch {
    return [];
  }
};

const eventsOf = async (taskId: string) => (await sluice.peer.events(taskId)).map(({ event }) => event);

async function reply(
  to: string,
  taskId: string,
  state: TaskState,
  kind: ControlKind,
  a2a: unknown,
): Promise<void> {
  const asks = await until(
    `${to} asks`,
    async () => (await eventsOf(taskId)).find((event) => event.state === state),
    { seen: () => eventsOf(taskId) },
  );
  // Nobody holds the task while it waits for a person.
  killWorkers();
  const createdAt = new Date().toISOString();
  const revision = asks.revision + 1;
  const message = controlMessage({ from: SENDER, to, taskId, kind, revision, a2a, createdAt });
  await sluice.peer.publish(message.subject, message.msgId, message.body);
}

async function completed(taskId: string): Promise<string> {
  const received = await sluice.peer.outcome(taskId);
  assertWhole(received);
  const last = received.at(-1)?.event;
  assert.equal(last?.state, "TASK_STATE_COMPLETED", last?.error?.message);
  return last.content;
}

test("research goes on after kill -9 of its worker, and asks once", async () => {
  const a2a = { parts: [{ data: { topic: "leases", sources: [{ url: `http://${host()}/` }] } }] };
  const { taskId } = await sluice.peer.ask("acme-research", { a2a, channelRef: "research" });
  await reply("acme-research", taskId, "TASK_STATE_INPUT_REQUIRED", "input_reply", { input: "worker" });
  assert.match(await completed(taskId), /^# leases, and there: worker\n.*\(line 3\).*\(line 5\)\n$/s);
  assert.equal(asked, 2);
  const questions = (await eventsOf(taskId)).filter(({ state }) => state === "TASK_STATE_INPUT_REQUIRED");
  assert.equal(questions.length, 1);
});

test("deploy-gate goes on after kill -9 of its worker, and tells its command that it is repeated", async () => {
  const a2a = "shop the prices of May";
  const { taskId } = await sluice.peer.ask("acme-deploy-gate", { a2a, channelRef: "deploy-gate" });
  await reply("acme-deploy-gate", taskId, "TASK_STATE_AUTH_REQUIRED", "auth_reply", { approve: true });
  const [[pid] = []] = await until("the command runs", () => deployments().length > 0 && deployments());
  kill9(pid);
  assert.equal(await completed(taskId), "shop is deployed: the prices of May");
  assert.deepEqual(
    deployments().map(([, task]) => task),
    [taskId, taskId],
  );
});

test("llm goes on after kill -9 of its worker, and asks for no stored turn again", async () => {
  const { taskId } = await sluice.peer.ask("acme-llm", { a2a: "What is 6 times 7?", channelRef: "llm" });
  assert.equal(await completed(taskId), "It is 42.");
  assert.deepEqual(turns, [1, 2, 2]);
  const events = await eventsOf(taskId);
  const { elapsed_ms, ...metrics } = events.at(-1)?.result?.metrics ?? {};
  assert.deepEqual(metrics, { turns: 2, tool_calls: 1, input_tokens: 20, output_tokens: 2 });
  assert.equal(JSON.stringify(events).includes(KEY), false);
});
