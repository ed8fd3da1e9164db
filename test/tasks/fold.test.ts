import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deadlineOf, fold, fruitlessClaims, lifeEnd, stateOf } from "../../shared/tasks/fold.ts";
import type { Entry } from "../../shared/tasks/items.ts";

const DAY = 86_400_000;
const head = { deadline: 10 * DAY, expiresAt: (40 * DAY) / 1_000 };

/** A journal of these entries, each at a day of its own unless it says another. */
function journal(...parts: Partial<Entry>[]): Entry[] {
  return parts.map((part, index) => ({
    place: index + 1,
    nonce: `n${index}`,
    epoch: 1,
    at: (index + 1) * DAY,
    revision: 1,
    ...part,
  }));
}

const asks: Partial<Entry> = { opens: [{ name: "q", kind: "ask", asked: 2 }] };
const answers: Partial<Entry> = { answer: { step: "q", value: { text: '"a"' } } };
const step: Partial<Entry> = { steps: [{ name: "s", kind: "run", value: { text: "1" }, ms: 1 }] };
const claim = (epoch: number): Partial<Entry> => ({ claim: true, epoch });

describe("a question", () => {
  test("stops the deadline while it is open, and moves it on by as long", () => {
    const open = fold(journal(asks));
    assert.equal(stateOf(open), "TASK_STATE_INPUT_REQUIRED");
    assert.equal(deadlineOf(head, open), Number.POSITIVE_INFINITY);
    const closed = fold(journal(asks, { ...answers, at: 5 * DAY }));
    assert.equal(stateOf(closed), "TASK_STATE_WORKING");
    assert.equal(deadlineOf(head, closed), 14 * DAY);
  });

  test("asked again after an answer, or given up, counts once", () => {
    const again = fold(journal(asks, answers, { ...asks, at: 7 * DAY }, { ...answers, at: 9 * DAY }));
    assert.equal(again.personsMs, 3 * DAY);
    const given = fold(
      journal(asks, {
        steps: [
          {
            name: "q",
            kind: "ask",
            value: { text: "" },
            ms: 1,
            error: { name: "ReplyTimeout", message: "" },
          },
        ],
      }),
    );
    assert.equal(given.personsMs, DAY);
    assert.equal(given.question, undefined);
  });

  test("that gives way to another stops counting, and the other begins", () => {
    const view = fold(journal(asks, { opens: [{ name: "r", kind: "approve", asked: 3 }] }));
    assert.equal(view.personsMs, DAY);
    assert.equal(view.question?.name, "r");
    assert.equal(stateOf(view), "TASK_STATE_AUTH_REQUIRED");
  });

  test("moves the deadline no further than a day before the task's items are deleted", () => {
    const long = fold(journal(asks, { ...answers, at: 31 * DAY }));
    assert.equal(lifeEnd(head), 39 * DAY);
    assert.equal(deadlineOf(head, long), 39 * DAY);
    assert.equal(deadlineOf(head, fold(journal(asks, { ...answers, at: 29.5 * DAY }))), 38.5 * DAY);
  });
});

test("claims are fruitless since a step was stored, opened or answered, and since one left in good order", () => {
  assert.equal(fruitlessClaims({}, fold([])), 1, "the first claim leaves no entry");
  assert.equal(fruitlessClaims({}, fold(journal(claim(2), claim(3)))), 3);
  for (const progress of [step, asks, answers])
    assert.equal(fruitlessClaims({}, fold(journal(claim(2), progress, claim(3)))), 1);
  assert.equal(fruitlessClaims({ calm: 3 }, fold(journal(claim(2), claim(3), claim(4), claim(5)))), 2);
  assert.equal(fruitlessClaims({ calm: 1 }, fold([])), 0);
});
