import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import * as z from "zod";
import { type Change, decide, MAX_REPLY_BYTES, promptOf } from "../../../functions/control/decide.ts";
import { fold } from "../../../shared/tasks/fold.ts";
import type { Entry } from "../../../shared/tasks/items.ts";
import type { Control } from "../../../shared/wire/index.ts";

const TASK = { taskId: "task_1", from: "adam", to: "acme-support" };

/** A journal that grows as the store's would. */
class Log {
  readonly entries: Entry[] = [];

  get revision(): number {
    return this.entries.at(-1)?.revision ?? 1;
  }

  put(parts: Partial<Entry>, events = 0): Entry {
    const revision = this.revision + events;
    const entry: Entry = {
      place: this.entries.length + 1,
      nonce: "n",
      epoch: 1,
      at: this.entries.length,
      ...parts,
      revision,
      ...(events > 0 && { events: [{ kind: "status", revision, body: { text: "{}" } }] }),
    };
    this.entries.push(entry);
    return entry;
  }

  ask(name: string, kind: "ask" | "approve" = "ask"): Entry {
    return this.put({ opens: [{ name, kind, asked: this.revision + 1 }] }, 1);
  }

  /** Puts what a control changes. */
  apply(change: Change, { kind, messageId, revision }: Control): Entry {
    const { event, answer, opens, end } = change;
    const parts: Partial<Entry> = { control: { kind, messageId, revision } };
    if (answer) parts.answer = { step: answer.step, value: { text: answer.value } };
    if (opens) parts.opens = [...opens];
    if (end) parts.end = end;
    return this.put(parts, event === undefined ? 0 : 1);
  }
}

let ids = 0;
function asks(kind: string, of: Partial<Control> = {}): Control {
  return { ...TASK, kind, revision: 3, messageId: `m${++ids}`, ...of };
}
function asking(name = "which", kind: "ask" | "approve" = "ask"): Log {
  const log = new Log();
  log.ask(name, kind);
  return log;
}

describe("a reply", () => {
  test("answers the question of its kind, with its a2a as JSON", () => {
    assert.deepEqual(decide(asking().entries, asks("input_reply", { a2a: { input: "blue" } })), {
      kind: "put",
      event: { state: "TASK_STATE_WORKING", content: "input received" },
      answer: { step: "which", value: '{"input":"blue"}' },
    });
    const approved = asks("auth_reply", { a2a: { approve: true, denyReason: "none" } });
    assert.deepEqual(decide(asking("go", "approve").entries, approved), {
      kind: "put",
      event: { state: "TASK_STATE_WORKING", content: "authorization received" },
      answer: { step: "go", value: '{"approve":true}' },
    });
  });

  test("that denies causes no event, and carries its reason, cut to what peers get", () => {
    const denied = (a2a: unknown, reason?: string) =>
      decide(asking("go", "approve").entries, asks("auth_reply", { a2a, ...(reason && { reason }) }));
    const put = (value: string) => ({ kind: "put", answer: { step: "go", value } });
    assert.deepEqual(
      denied({ approve: false, denyReason: "no" }),
      put('{"approve":false,"denyReason":"no"}'),
    );
    assert.deepEqual(denied({ approve: false }, "why"), put('{"approve":false,"denyReason":"why"}'));
    assert.deepEqual(denied({ approve: false, denyReason: 7 }), put('{"approve":false}'));
    const long = denied({ approve: false, denyReason: "x".repeat(2_001) });
    assert.deepEqual(long, put(`{"approve":false,"denyReason":"${"x".repeat(2_000)}…"}`));
  });

  test("without an explicit approve of true or false is asked for again", () => {
    for (const a2a of [
      undefined,
      {},
      { approve: "true" },
      { approve: 1 },
      { approve: null },
      "yes",
      [true],
    ]) {
      const decision = decide(asking("go", "approve").entries, asks("auth_reply", { a2a }));
      assert.deepEqual(decision, {
        kind: "put",
        event: {
          state: "TASK_STATE_AUTH_REQUIRED",
          content: "expected approve to be true or false",
          prompt: true,
        },
        opens: [{ name: "go", kind: "approve", asked: 3 }],
      });
    }
  });

  test("may be as large as a control, and no larger", () => {
    const text = (bytes: number) => "x".repeat(bytes - 2);
    const fits = decide(asking().entries, asks("input_reply", { a2a: text(MAX_REPLY_BYTES) }));
    assert.ok(fits.kind === "put" && fits.answer !== undefined);
    const past = decide(asking().entries, asks("input_reply", { a2a: text(MAX_REPLY_BYTES + 1) }));
    assert.ok(past.kind === "put" && past.answer === undefined);
    assert.equal(past.event?.state, "TASK_STATE_INPUT_REQUIRED");
    assert.match(past.event?.content ?? "", /at most 262144 bytes, got 262145/);
  });

  test("counts from the revision after the question's on", () => {
    for (const [revision, kind] of [
      [0, "replay"],
      [1, "replay"],
      [2, "replay"],
      [3, "put"],
      [Number.MAX_SAFE_INTEGER, "put"],
    ] as const)
      assert.equal(decide(asking().entries, asks("input_reply", { revision })).kind, kind, `${revision}`);
  });

  test("to a question asked again counts only after that", () => {
    const log = asking("go", "approve");
    const vague = asks("auth_reply");
    const again = decide(log.entries, vague);
    assert.ok(again.kind === "put");
    log.apply(again, vague);
    assert.equal(decide(log.entries, vague).kind, "known");
    const copy = asks("auth_reply", { a2a: { approve: true } });
    assert.equal(decide(log.entries, copy).kind, "replay");
    assert.equal(decide(log.entries, { ...copy, revision: 4 }).kind, "put");
  });

  test("of the wrong kind, or without a question, is refused", () => {
    for (const [log, kind] of [
      [new Log(), "input_reply"],
      [new Log(), "auth_reply"],
      [asking("which", "ask"), "auth_reply"],
      [asking("go", "approve"), "input_reply"],
    ] as const)
      assert.equal(decide(log.entries, asks(kind, { a2a: { approve: true } })).kind, "refuse");
  });

  test("of a question that was given up, or whose step failed, is refused", () => {
    const log = asking();
    const error = { name: "ReplyTimeout", message: "nobody answered" };
    log.put({ steps: [{ name: "which", kind: "ask", value: { text: "" }, ms: 1, error }] });
    assert.equal(decide(log.entries, asks("input_reply", { a2a: "late" })).kind, "refuse");
  });
});

test("status tells the state as it is, and what is asked", () => {
  const event = (log: Log) => {
    const decision = decide(log.entries, asks("status"));
    return decision.kind === "put" ? decision.event : undefined;
  };
  assert.deepEqual(event(new Log()), { state: "TASK_STATE_WORKING", prompt: false });
  assert.deepEqual(event(asking()), { state: "TASK_STATE_INPUT_REQUIRED", prompt: true });
  assert.deepEqual(event(asking("go", "approve")), { state: "TASK_STATE_AUTH_REQUIRED", prompt: true });
});

test("cancel ends a task whatever it waits for", () => {
  const error = { code: "canceled", message: "enough" };
  for (const log of [new Log(), asking(), asking("go", "approve")])
    assert.deepEqual(decide(log.entries, asks("cancel", { reason: "enough" })), {
      kind: "put",
      event: { state: "TASK_STATE_CANCELED", error },
      end: { state: "TASK_STATE_CANCELED", ...error },
    });
});

test("the prompt is that of the first time a question was asked", () => {
  const log = asking("one");
  const answered = asks("input_reply", { a2a: "x" });
  const first = decide(log.entries, answered);
  assert.ok(first.kind === "put");
  log.apply(first, answered);
  assert.equal(promptOf(log.entries), undefined);
  log.ask("two");
  log.ask("two");
  assert.equal(promptOf(log.entries)?.revision, 4);
});

const a2a = fc.oneof(
  fc.constant(undefined),
  fc.record({ approve: fc.oneof(fc.boolean(), fc.jsonValue()) }, { requiredKeys: [] }),
  fc.jsonValue(),
);
const controls = fc.record({
  kind: fc.constantFrom("cancel", "status", "input_reply", "auth_reply", "explode"),
  // Few ids, so that some are met again.
  messageId: fc.integer({ min: 0, max: 12 }).map((id) => `c${id}`),
  revision: fc.oneof(fc.nat({ max: 12 }), fc.constant(Number.MAX_SAFE_INTEGER)),
  a2a,
});
const happenings = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: controls.map((of) => ({ does: "control" as const, of })) },
    {
      weight: 2,
      arbitrary: fc.constantFrom("ask", "approve").map((kind) => ({ does: "ask" as const, kind })),
    },
    { weight: 1, arbitrary: fc.constantFrom("progress", "claim", "giveUp").map((does) => ({ does })) },
  ),
  { maxLength: 40 },
);

test("whatever happens in whatever order, a question has one answer, given by who has seen it", () => {
  fc.assert(
    fc.property(happenings, (all) => {
      const log = new Log();
      const answered = new Set<string>();
      let names = 0;
      for (const each of all) {
        const before = fold(log.entries);
        const question = before.question;
        if (before.end !== undefined) break;
        if (each.does === "progress") log.put({}, 1);
        if (each.does === "claim") log.put({ claim: true });
        if (each.does === "giveUp" && question !== undefined)
          log.put({ steps: [{ name: question.name, kind: question.kind, value: { text: "" }, ms: 0 }] });
        if (each.does === "ask" && question === undefined && "kind" in each)
          log.ask(`q${++names}`, each.kind === "ask" ? "ask" : "approve");
        if (each.does !== "control" || !("of" in each)) continue;

        const sent: Control = { ...TASK, ...each.of };
        const decision = decide(log.entries, sent);
        assert.deepEqual(decide(log.entries, sent), decision);
        if (decision.kind !== "put") continue;
        const isReply = sent.kind === "input_reply" || sent.kind === "auth_reply";
        if (isReply) {
          assert.ok(question?.asked !== undefined && sent.revision > question.asked);
          assert.equal(sent.kind, question.kind === "approve" ? "auth_reply" : "input_reply");
        }
        assert.equal(decision.end !== undefined, sent.kind === "cancel");
        if (decision.answer !== undefined) {
          assert.ok(isReply && !answered.has(decision.answer.step));
          assert.equal(decision.answer.step, question?.name);
          answered.add(decision.answer.step);
          if (sent.kind === "auth_reply") {
            const given: unknown = JSON.parse(decision.answer.value);
            const meant = z.object({ approve: z.boolean() }).parse(sent.a2a).approve;
            assert.deepEqual(given, { approve: meant });
          }
        }
        log.apply(decision, sent);
        const after = fold(log.entries);
        // Only an answer, and the end, close a question; nothing that comes again is taken twice.
        if (decision.answer === undefined) assert.equal(after.question?.name, question?.name);
        else assert.equal(after.question, undefined);
        assert.equal(decide(log.entries, sent).kind, "known");
      }
      const revisions = log.entries.flatMap(({ events = [] }) => events.map(({ revision }) => revision));
      assert.deepEqual(
        revisions,
        revisions.map((_, index) => index + 2),
      );
    }),
  );
});
