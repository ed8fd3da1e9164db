import assert from "node:assert/strict";
import { test } from "node:test";
import { StreamResponse, Task } from "@a2a-js/sdk";
import fc from "fast-check";
import { readEvent, readPage, readSent, readTask } from "../../../shared/remotes/exchange/seen.ts";

const text = fc.string({ unit: "binary" });
const id = fc.string({ minLength: 1, maxLength: 256, unit: "grapheme-ascii" });
const mimeType = fc.oneof(
  text,
  fc.constantFrom("application/vnd.protolabs.cost-v1+json", "application/VND.protolabs.tool-call-v1+JSON"),
);
const part = fc.oneof(
  fc.record({ text }),
  fc.record({ raw: fc.base64String() }),
  fc.record({ url: fc.webUrl() }),
  fc.record(
    { data: fc.jsonValue(), mediaType: text, metadata: fc.record({ mimeType }, { requiredKeys: [] }) },
    { requiredKeys: ["data"] },
  ),
  fc.record({ future: text }),
);
const message = fc.record({ messageId: id, role: fc.constant("ROLE_AGENT"), parts: fc.array(part) });
const artifact = fc.record(
  { artifactId: id, name: text, description: text, parts: fc.array(part) },
  { requiredKeys: ["artifactId", "parts"] },
);
const state = fc.constantFrom(
  "TASK_STATE_SUBMITTED",
  "TASK_STATE_WORKING",
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_REJECTED",
  "TASK_STATE_AUTH_REQUIRED",
);
const status = fc.record({ state, message }, { requiredKeys: ["state"] });
const task = fc.record(
  { id, contextId: id, status, artifacts: fc.array(artifact, { maxLength: 10 }) },
  { requiredKeys: ["id", "status"] },
);
const update = { taskId: id, contextId: id };
const event = fc.oneof(
  fc.record({ task }),
  fc.record({ message }),
  fc.record({ statusUpdate: fc.record({ ...update, status }) }),
  fc.record({
    artifactUpdate: fc.record({ ...update, artifact, append: fc.boolean(), lastChunk: fc.boolean() }),
  }),
);

test("whatever an SDK may send of A2A is read, and each part of it once", () => {
  fc.assert(
    fc.property(event, (sent) => {
      const read = readEvent(StreamResponse.fromJSON(sent));
      assert.ok(read.ok, read.ok ? "" : read.reason);
      const { artifacts, observed, message: said } = read.value;
      const kept = [...artifacts.flatMap(({ parts }) => parts), ...(said?.parts ?? [])];
      const json = JSON.stringify(sent);
      // A part that has nothing we know is left out, and so is one whose data is null, which the SDK takes for none.
      const known = json.match(/\{"(text|raw|url|data)":(?!null)/g)?.length ?? 0;
      assert.equal(kept.length + observed.length, known);
      for (const { mimeType: of } of observed)
        assert.match(of, /^application\/vnd\.protolabs\.[a-z0-9.-]+\+json$/);
      for (const of of kept) assert.ok(!("metadata" in of), "nothing of a part's metadata is kept");
    }),
  );
});

test("a task that was read is the task that was sent", () => {
  fc.assert(
    fc.property(task, (sent) => {
      const read = readTask(Task.fromJSON(sent));
      assert.ok(read.ok);
      const { taskId, contextId, state: is, artifacts } = read.value;
      assert.deepEqual([taskId, contextId, is], [sent.id, sent.contextId, sent.status.state]);
      const over = /COMPLETED|FAILED|CANCELED|REJECTED/.test(sent.status.state);
      assert.ok(artifacts.every(({ last, append }) => last === over && !append));
    }),
  );
});

test("whatever else there may be is read, or is told by its field without a word of it", () => {
  const anything = fc.oneof(
    fc.anything(),
    fc.object({
      key: fc.constantFrom("payload", "$case", "value", "id", "status", "state", "artifacts", "parts"),
    }),
  );
  fc.assert(
    fc.property(anything, (value) => {
      for (const read of [readEvent(value), readSent(value), readTask(value), readPage(value)])
        if (!read.ok) assert.match(read.reason, /^(event|message|task|list)[\w.$-]*: [^\n]{1,300}$/);
    }),
  );
});

const sdkPart = (content: object, more: object = {}) => ({ content, filename: "", mediaType: "", ...more });
const sdkTask = (over: object) => ({ id: "t", contextId: "", status: { state: 2 }, artifacts: [], ...over });
const withPart = (part: object) => readTask(sdkTask({ artifacts: [{ artifactId: "a", parts: [part] }] }));

test("what is over a bound is refused, or cut where it is only a label", () => {
  const url = (length: number) => withPart(sdkPart({ $case: "url", value: "u".repeat(length) }));
  assert.ok(url(8_192).ok);
  assert.ok(!url(8_193).ok);
  const labels = (length: number) => {
    const label = "l".repeat(length);
    const parts = [sdkPart({ $case: "text", value: "" }, { filename: label, mediaType: label })];
    const read = readTask(
      sdkTask({ artifacts: [{ artifactId: "a", name: label, description: label, parts }] }),
    );
    assert.ok(read.ok);
    const [of] = read.value.artifacts;
    return [of?.name, of?.parts[0]?.filename, of?.parts[0]?.mediaType, of?.description].map(
      (one) => one?.length,
    );
  };
  assert.deepEqual(labels(255), [255, 255, 255, 255]);
  assert.deepEqual(labels(256), [255, 255, 255, 256]);
  assert.deepEqual(labels(8_193), [255, 255, 255, 8_192]);
  for (const state of [-1, 9, 1.5, "2"]) assert.ok(!readTask(sdkTask({ status: { state } })).ok);
  const unknown = readTask(sdkTask({ status: { state: 0 } }));
  assert.ok(unknown.ok && unknown.value.state === undefined);
});

test("an artifact of nothing but values of extensions is none; one without parts is one", () => {
  const metadata = { mimeType: "application/vnd.protolabs.cost-v1+json" };
  const cost = sdkPart({ $case: "data", value: { costUsd: 1 } }, { metadata });
  const read = readTask(
    sdkTask({
      status: { state: 3, message: { messageId: "m", contextId: "", taskId: "", parts: [cost] } },
      artifacts: [
        { artifactId: "frame", parts: [cost] },
        { artifactId: "mixed", parts: [sdkPart({ $case: "text", value: "x" }), cost] },
        { artifactId: "empty", parts: [] },
      ],
    }),
  );
  assert.ok(read.ok);
  assert.deepEqual(
    read.value.artifacts.map((of) => [of.id, of.parts]),
    [
      ["mixed", [{ text: "x" }]],
      ["empty", []],
    ],
  );
  assert.equal(read.value.observed.length, 3);
  assert.deepEqual(read.value.message, { messageId: "m", text: "", parts: [] });
});
