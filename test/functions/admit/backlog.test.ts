import assert from "node:assert/strict";
import { test } from "node:test";
import * as z from "zod";
import { Backlog } from "../../../functions/admit/backlog.ts";
import { defineAgent, skill } from "../../../shared/agents/index.ts";
import { deploymentOf } from "../../../testing/deployment.ts";

const RUNTIME = "test-narrow";
const agent = defineAgent({
  id: "narrow",
  description: "",
  skills: { task: skill({ name: "Task", description: "", input: z.string(), run: async () => "" }) },
});

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
  const deps = { store, deployment: deploymentOf(agent, { settings: {}, policy, neighbours: [] }) };
  return { seen, refuses: (runtime = RUNTIME) => backlog.refuses(deps, runtime) };
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

test("it does not look where there is no limit, or no such agent", async () => {
  const { seen, refuses } = sandbox({ maxConcurrent: 0, maxQueued: 1 });
  seen.queued = 9;
  assert.equal(await refuses(), undefined);
  assert.equal(await refuses("another"), undefined);
  assert.equal(seen.looks, 0);
});
