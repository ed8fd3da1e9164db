import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { dieAtEachWrite } from "../support/kill-points.ts";
import { agentOf, ask, BOB, failure } from "./support/delegating.ts";

describe("whatever dies", () => {
  const agent = agentOf(async (step) => {
    const { text, artifacts } = await ask(step, { onStatus: (text) => step.status(text) });
    await step.artifact(
      "copy",
      await step.run("read", async () => Buffer.from((await artifacts[0]?.bytes()) ?? []).toString()),
    );
    const failed = await failure(
      step.delegate("slow", { to: BOB, skill: "bob/x", message: "b", timeout: "1h" }),
    );
    return `${text} ${failed}`;
  });

  for (const when of ["before", "after"] as const)
    test(`at any write, ${when} it: the task ends with the same events`, async (t) => {
      const writes = await dieAtEachWrite({
        agent,
        start: { text: "go" },
        when,
        play: async (task) => {
          const bob = await task.delegation("bob");
          await bob.status("at it");
          await bob.complete({ text: "done", artifacts: { a: "A" } });
          const slow = await task.delegation("slow");
          await slow.accept();
          await task.outcome();
          assert.ok(slow.cancelled);
          assert.equal(bob.cancelled, false);
        },
        eventsOf: (events) =>
          events
            .filter(({ content }) => content !== "at it")
            .map(({ kind, content, artifact }) => [kind, content, artifact?.name]),
      });
      t.diagnostic(`${writes} writes`);
      assert.ok(writes > 25, `${writes} writes`);
    });

  for (const when of ["before", "after"] as const)
    test(`at any write, ${when} it: a cancel of the task cancels what it has handed on`, async () => {
      for (const early of [true, false])
        await dieAtEachWrite({
          agent: agentOf((step) => ask(step)),
          start: { text: "go" },
          when,
          play: async (task) => {
            const bob = await task.delegation("bob");
            if (early) await bob.accept();
            await task.cancel();
            await bob.accept();
            await task.skip("1h");
            assert.ok(bob.cancelled);
          },
          eventsOf: (events) => events.map(({ kind, state }) => [kind, state]),
        });
    });
});
