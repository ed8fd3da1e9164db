import assert from "node:assert/strict";
import { test } from "node:test";
import { Standings } from "../../shared/policy/standing.ts";

test("a sandbox looks once in five seconds for each agent, and again at once after it could not", async () => {
  let now = 0;
  const looks: string[] = [];
  let fails = false;
  const standingOf = async (runtime: string) => {
    looks.push(runtime);
    if (fails) throw new Error("no answer");
    return {};
  };
  const standings = new Standings({ store: { standingOf }, now: () => now, timing: { pauseKnownMs: 5_000 } });
  await Promise.all([standings.of("a"), standings.of("a"), standings.of("b")]);
  now = 4_999;
  await standings.of("a");
  assert.deepEqual(looks, ["a", "b"]);
  now = 5_000;
  fails = true;
  await assert.rejects(standings.of("a"));
  fails = false;
  await standings.of("a");
  await standings.of("a");
  assert.deepEqual(looks, ["a", "b", "a", "a"]);
  await standings.look("a");
  assert.equal(looks.length, 5);
});
