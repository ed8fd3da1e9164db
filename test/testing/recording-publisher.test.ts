import assert from "node:assert/strict";
import { test } from "node:test";
import { storedEvents } from "../../shared/events/drafts.ts";
import { memoryValues } from "../../shared/testing/memory-values.ts";
import { DUPLICATE_WINDOW_MS, recordingPublisher } from "../../shared/testing/recording-publisher.ts";

const TASK = {
  taskId: "task_8463c7c504e9c3d38998774d",
  messageId: "msg_1",
  from: "adam",
  to: "acme-support",
};

test("an event is taken once within the stream's window, and by its suffix once more", async () => {
  const values = memoryValues();
  let time = Date.UTC(2030, 0, 1);
  const publisher = recordingPublisher({ values, now: () => time });
  const draft = { kind: "status", state: "TASK_STATE_WORKING", content: "on it" } as const;
  const [event] = await storedEvents(values, TASK, [draft], { revision: 1, at: time });
  assert.ok(event);
  const taken = () => publisher.events(TASK.taskId).length;

  assert.equal(await publisher.lastRevision(TASK), 0);
  await publisher.publish(TASK, event);
  time += DUPLICATE_WINDOW_MS - 1;
  await publisher.publish(TASK, event);
  await publisher.repeat(TASK, event, time);
  assert.equal(taken(), 1);
  await publisher.publish(TASK, event, "again");
  assert.equal(taken(), 2);
  time += 1;
  await publisher.repeat(TASK, event, time - DUPLICATE_WINDOW_MS);
  assert.equal(taken(), 2, "what is old is looked for first");
  await publisher.publish(TASK, event);
  assert.equal(taken(), 3, "what is forgotten is taken again");
  assert.equal(await publisher.lastRevision(TASK), 2);
});
