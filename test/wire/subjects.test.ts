import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as z from "zod";
import {
  agentId,
  controlSubject,
  eventSubject,
  messageId,
  parseSubject,
  taskId,
  taskSubject,
} from "../../shared/wire/index.ts";
import { readFixture } from "../support/fixtures.ts";

const fixtures = z.array(z.object({ subject: z.string(), parsed: z.unknown() }));
const token = (length: number) => fc.stringMatching(new RegExp(`^[A-Za-z0-9_-]{1,${length}}$`));
const agents = token(64).filter((id) => agentId().safeParse(id).success);
const messages = token(128).filter((id) => messageId().safeParse(id).success);
const tasks = token(96).filter((id) => taskId().safeParse(id).success);

for (const { subject, parsed } of fixtures.parse(readFixture("subjects.json")))
  test(`subject ${JSON.stringify(subject).slice(0, 80)}`, () =>
    assert.deepEqual(parseSubject(subject), parsed));

test("what is built is parsed", () => {
  fc.assert(
    fc.property(agents, agents, messages, tasks, (from, to, messageId, taskId) => {
      assert.deepEqual(parseSubject(taskSubject(from, to, messageId)), { kind: "task", from, to, messageId });
      assert.deepEqual(parseSubject(controlSubject(from, to, taskId, "input_reply")), {
        kind: "control",
        from,
        to,
        taskId,
        control: "input_reply",
      });
      assert.deepEqual(parseSubject(eventSubject(from, to, taskId, "status")), {
        kind: "event",
        from,
        to,
        taskKey: taskId,
        event: "status",
      });
    }),
  );
});

test("any text is a subject or null, and never throws", () => {
  const wild = fc.oneof(
    fc.string(),
    fc.string({ unit: "binary" }).map((text) => `a2a.v1.task.a.b.${text}`),
  );
  fc.assert(
    fc.property(wild, (text) => {
      const parsed = parseSubject(text);
      if (parsed?.kind === "task") assert.equal(taskSubject(parsed.from, parsed.to, parsed.messageId), text);
    }),
  );
});

test("a control's task id may not look like a rejection's key", () => {
  assert.equal(parseSubject("a2a.v1.control.a.b.msg_1.cancel"), null);
  assert.notEqual(parseSubject("a2a.v1.event.a.b.msg_1.rejected"), null);
});

test("names that every object has are no kinds", () => {
  for (const kind of ["constructor", "toString", "__proto__"])
    assert.equal(parseSubject(`a2a.v1.${kind}.a.b.c`), null);
});
