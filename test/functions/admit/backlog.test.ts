import assert from "node:assert/strict";
import { test } from "node:test";
import { Backlog } from "../../../functions/admit/backlog.ts";
import { agentPolicy } from "../../../shared/config/policy.ts";

const RUNTIME = "test-narrow";

/** A sandbox that admits tasks, and how often it looks. */
function sandbox(policy: object) {
  const backlog = new Backlog();
  const seen = { queued: 0, looks: 0 };
  const store = {
    slots: async () => {
      seen.looks++;
      return { live: new Set<string>(), queued: seen.queued };
    },
  };
  const limits = agentPolicy.parse(policy);
  return { seen, refuses: () => backlog.refuses({ store }, RUNTIME, limits) };
}

test("it looks at first, and then when four sandboxes could have admitted as many as wait at the most", async () => {
  const { seen, refuses } = sandbox({ maxQueued: 1_000 });
  const looks = [];
  for (let n = 0; n < 501; n++) {
    assert.equal(await refuses(), undefined);
    looks.push(seen.looks);
  }
  assert.deepEqual([looks[0], looks[249], looks[250], looks[499], looks[500]], [1, 1, 2, 2, 3]);
});

test("it looks sooner the more wait", async () => {
  const { seen, refuses } = sandbox({ maxQueued: 1_000 });
  seen.queued = 999;
  for (let n = 0; n < 5; n++) assert.equal(await refuses(), undefined);
  assert.equal(seen.looks, 5);
});

test("it refuses at the bound, not one before, and looks each time whether that has changed", async () => {
  const { seen, refuses } = sandbox({ maxQueued: 7 });
  seen.queued = 7;
  for (let n = 0; n < 3; n++)
    assert.equal(await refuses(), "overloaded: 7 tasks wait already, of at most about 7");
  assert.equal(seen.looks, 3);
  seen.queued = 6;
  assert.equal(await refuses(), undefined);
});

test("it does not look where there is no limit", async () => {
  const { seen, refuses } = sandbox({ maxConcurrent: 0, maxQueued: 1 });
  seen.queued = 9;
  assert.equal(await refuses(), undefined);
  assert.equal(seen.looks, 0);
});
