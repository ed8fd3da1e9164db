import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  acceptedEvent,
  artifactRef,
  controlMessage,
  errorCode,
  readEnvelope,
  readTaskPayload,
  rejectedEvent,
  resultEvent,
  taskIdOf,
  taskMessage,
  taskState,
} from "../../shared/wire/index.ts";

const page = readFileSync(new URL("../../docs/wire.md", import.meta.url), "utf8");
const examples = [...page.matchAll(/```json\n(.*?)```/gs)].map(([, text = ""]) => JSON.parse(text));
const [asked, accepted, rejected, result, cancel] = examples;
const task = { taskId: taskIdOf(asked.from, asked.to, asked.messageId), ...asked };

test("the page has these examples", () => assert.equal(examples.length, 5));

test("the task is what a delegator publishes and an executor takes", () => {
  const { from, to, messageId, payload, createdAt } = asked;
  const { subject, body } = taskMessage({ from, to, messageId, request: payload, createdAt });
  assert.equal(body, JSON.stringify(asked));
  assert.equal(readEnvelope(subject, new TextEncoder().encode(body), Date.parse(createdAt)).ok, true);
  assert.equal(readTaskPayload(payload).ok, true);
});

test("the events are what an executor publishes, byte for byte", () => {
  assert.equal(acceptedEvent(task, accepted.createdAt).body, JSON.stringify(accepted));
  const { clientTaskRef, error } = rejected.payload;
  const refusal = { clientTaskRef, code: errorCode().parse(error.Code), message: error.Message };
  assert.equal(rejectedEvent(task, refusal, rejected.createdAt).body, JSON.stringify(rejected));
  const { state, content, revision, result: end } = result.payload;
  const artifacts = [artifactRef(task.taskId, end.Artifacts[0])];
  const ended = resultEvent(
    task,
    { revision, state, content, artifacts, metrics: end.Metrics },
    result.createdAt,
  );
  assert.equal(ended.body, JSON.stringify(result));
});

test("the control is what a delegator publishes", () => {
  const { from, to, taskId, revision, payload, createdAt } = cancel;
  const { a2a, clientTaskRef, reason } = payload;
  const sent = controlMessage({
    from,
    to,
    taskId,
    kind: "cancel",
    revision,
    a2a,
    clientTaskRef,
    reason,
    createdAt,
  });
  assert.equal(sent.body, JSON.stringify(cancel));
});

test("every code and every state is named", () => {
  for (const code of errorCode().options) assert.ok(page.includes(`\`${code}\``), code);
  for (const state of taskState().options) assert.ok(page.includes(state.replace("TASK_STATE", "")), state);
});

test("the code cites sections that there are", () => {
  const sections = [...page.matchAll(/^## (\d+) /gm)].map(([, number]) => number);
  assert.deepEqual(
    sections,
    sections.map((_, index) => String(index + 1)),
  );
});
