import assert from "node:assert/strict";
import { test } from "node:test";
import {
  acceptedEvent,
  artifactEvent,
  artifactRef,
  readEvent,
  rejectedEvent,
  resultEvent,
  statusEvent,
} from "../../shared/wire/index.ts";

const CREATED_AT = "2020-01-01T00:00:00Z";
const task = { taskId: "task_1", messageId: "m1", from: "adam", to: "acme" };
const common = { from: "acme", to: "adam", taskKey: "task_1", taskId: "task_1", createdAt: CREATED_AT };
const report = artifactRef("task_1", {
  id: "report",
  name: "report.txt",
  mediaType: "text/plain",
  digest: `sha256:${"0".repeat(64)}`,
  sizeBytes: 0,
});

function read(event: { subject: string; body: string }) {
  return readEvent(event.subject, new TextEncoder().encode(event.body));
}

/** An event of an executor that writes its own way. */
function foreign(kind: string, payload: unknown, envelope: object = {}) {
  const { subject, body } = acceptedEvent(task, CREATED_AT);
  return read({
    subject: subject.replace("accepted", kind),
    body: JSON.stringify({ ...JSON.parse(body), payload, ...envelope }),
  });
}

function value(reading: ReturnType<typeof read>) {
  assert.ok(reading.ok, reading.ok ? "" : reading.reason);
  return reading.value;
}

test("our own events, of any age", () => {
  assert.deepEqual(value(read(acceptedEvent(task, CREATED_AT))), {
    ...common,
    kind: "accepted",
    messageId: "m1",
    revision: 1,
    state: "TASK_STATE_WORKING",
    content: "",
    error: null,
  });
  assert.deepEqual(
    value(
      read(
        statusEvent(task, { revision: 2, state: "TASK_STATE_INPUT_REQUIRED", content: "Where?" }, CREATED_AT),
      ),
    ),
    {
      ...common,
      kind: "status",
      messageId: "task_1_status",
      revision: 2,
      state: "TASK_STATE_INPUT_REQUIRED",
      content: "Where?",
      error: null,
    },
  );
  assert.deepEqual(
    value(read(artifactEvent(task, { revision: 3, artifact: report }, CREATED_AT))).artifact,
    report,
  );
  const { clientTaskRef, taskKey, taskId, state, error } = value(
    read(rejectedEvent(task, { clientTaskRef: "ref-7", code: "overloaded", message: "full" }, CREATED_AT)),
  );
  assert.deepEqual(
    { clientTaskRef, taskKey, taskId, state, error },
    {
      clientTaskRef: "ref-7",
      taskKey: "msg_m1",
      taskId: undefined,
      state: "TASK_STATE_REJECTED",
      error: { code: "overloaded", message: "full" },
    },
  );
  const end = {
    revision: 4,
    state: "TASK_STATE_COMPLETED",
    content: "done",
    artifacts: [report],
    metrics: { elapsed_ms: 1 },
  } as const;
  assert.deepEqual(value(read(resultEvent(task, end, CREATED_AT))), {
    ...common,
    kind: "result",
    messageId: "m1",
    revision: 4,
    state: "TASK_STATE_COMPLETED",
    content: "done",
    error: null,
    result: { artifacts: [report], metrics: { elapsed_ms: 1 } },
  });
});

test("keys in lower camel case, as other executors write them", () => {
  const { state, error, result, content } = value(
    foreign("result", {
      error: { code: "x", message: "y" },
      result: {
        state: "TASK_STATE_FAILED",
        content: "half",
        error: { code: "timeout", message: "late" },
        artifacts: null,
      },
    }),
  );
  assert.equal(state, "TASK_STATE_FAILED");
  assert.equal(content, "half");
  assert.deepEqual(error, { code: "timeout", message: "late" });
  assert.deepEqual(result, { artifacts: [], metrics: {} });
});

test("a result without a state is completed, and errors may be null", () => {
  const { state, error, revision } = value(foreign("result", { error: null }, { revision: 7 }));
  assert.equal(state, "TASK_STATE_COMPLETED");
  assert.equal(error, null);
  assert.equal(revision, 7);
});

test("the payload's revision counts more than the envelope's, unless it is 0", () => {
  const state = "TASK_STATE_WORKING";
  assert.equal(value(foreign("status", { state, revision: 3 }, { revision: 2 })).revision, 3);
  assert.equal(value(foreign("status", { state, revision: 0 }, { revision: 2 })).revision, 2);
  assert.equal(value(foreign("status", { state }, { revision: null })).revision, 0);
});

test("an artifact reference with only what is needed", () => {
  const { id, digest, sizeBytes, bucket, key } = report;
  const { artifact } = value(
    foreign("artifact", { state: "TASK_STATE_WORKING", artifact: { id, digest, sizeBytes, bucket, key } }),
  );
  assert.deepEqual(artifact, { ...report, name: "report", mediaType: "application/octet-stream" });
});

test("what is no event is none", () => {
  assert.equal(foreign("status", {}).ok, false);
  assert.equal(foreign("status", { state: "working" }).ok, false);
  assert.equal(foreign("exploded", { state: "TASK_STATE_WORKING" }).ok, false);
  assert.equal(foreign("status", "text").ok, false);
  assert.equal(foreign("result", { result: "text" }).ok, false);
  assert.equal(foreign("status", { state: "TASK_STATE_WORKING" }, { taskId: "task_2" }).ok, false);
  assert.equal(readEvent("a2a.v1.card.acme", new TextEncoder().encode("{}")).ok, false);
});

test("data of a status is read as it is, whoever wrote it, and there alone", () => {
  for (const data of [{ done: 1, "": [null] }, "text", 0, false, []]) {
    const event = statusEvent(
      task,
      { revision: 2, state: "TASK_STATE_WORKING", content: "x", data },
      CREATED_AT,
    );
    assert.deepEqual(value(read(event)).data, data);
    assert.deepEqual(value(foreign("status", { state: "TASK_STATE_WORKING", Data: data })).data, data);
    assert.ok(!("data" in value(foreign("result", { state: "TASK_STATE_COMPLETED", data }))));
  }
  assert.ok(!("data" in value(foreign("status", { state: "TASK_STATE_WORKING", data: null }))));
  assert.ok(!("data" in value(foreign("status", { state: "TASK_STATE_WORKING" }))));
});
