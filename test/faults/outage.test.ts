import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { type Stage, startStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

/** What a processor has to do does not run faster; beyond this, messages wait longer for it than for an answer. */
const SCALE = 120;
const HOUR_MS = 3_600_000 / SCALE;
/** More than the queue may hold, and than JetStream gives out unacknowledged. */
const MESSAGES = 1_100;
/** One in so many is to be worked on; the others are for a skill that there is not, and are rejected. */
const WORK = 10;
/** The bound of the queue `tasks`. */
const BOUND = 1_000;

let stage: Stage;
before(async () => {
  stage = await startStage({ timeScale: SCALE });
});
after(() => stage.stop());

test("an hour's messages that come while the table is out of reach are each admitted once when it is back", async (t) => {
  const { proxies, sluice, log } = stage;
  const admitted = new Map<string, number>();
  proxies.points.on({
    after(point, refused) {
      if (point.kind !== "dynamodb PutItem head" || refused) return undefined;
      for (const task of point.tasks) admitted.set(task, (admitted.get(task) ?? 0) + 1);
      return undefined;
    },
  });
  const sampling = new AbortController();
  t.after(() => sampling.abort());
  const deepest = sample(() => stage.depth("tasks"), sampling.signal);

  proxies.outOfReach("dynamodb", true);
  const begun = Date.now();
  const asked: { taskId: string; key: string; kinds: string[] }[] = [];
  while (asked.length < MESSAGES) {
    // They come evenly over the first half of the hour, as fast as that may be.
    await wait(Math.max(0, begun + (asked.length / MESSAGES) * (HOUR_MS / 2) - Date.now()));
    const works = asked.length % WORK === 0;
    const request = { channelRef: "support", skillId: works ? "task" : "juggle" };
    const { taskId, messageId } = await sluice.peer.ask("acme-support", request);
    asked.push(
      works
        ? { taskId, key: taskId, kinds: ["accepted", "result"] }
        : { taskId, key: `msg_${messageId}`, kinds: ["rejected"] },
    );
  }
  await wait(Math.max(0, begun + HOUR_MS - Date.now()));
  assert.equal(admitted.size, 0, "nothing could be admitted");
  proxies.outOfReach("dynamodb", false);

  const open = () => asked.filter(({ key }) => !log.ended(key)).length;
  await until("every message is answered to its end", () => open() === 0, {
    withinMs: 240_000,
    seen: () => ({ admitted: admitted.size, open: open() }),
  });
  sampling.abort();
  for (const { taskId, key, kinds } of asked) {
    assert.equal(admitted.get(taskId), 1, `${taskId} is admitted once`);
    assert.deepEqual(
      log.of(key).map(({ kind }) => kind),
      kinds,
    );
  }
  await stage.drained();
  const most = await deepest;
  t.diagnostic(`the queue held at most ${most} messages`);
  assert.ok(most <= BOUND, `the queue held ${most} messages, its bound is ${BOUND}`);
});

/** The largest of what `measure` gave until the signal. */
async function sample(measure: () => Promise<number>, signal: AbortSignal): Promise<number> {
  let largest = 0;
  while (!signal.aborted) {
    const now = await measure().catch(() => 0); // a host that is stopped has no queue
    largest = Math.max(largest, now);
    await wait(10);
  }
  return largest;
}
