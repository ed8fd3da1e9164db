import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { ask, start } from "./support/delegating.ts";

describe("progress", () => {
  test("is passed on as it comes, the newest, and not that of the past", async () => {
    const seen: string[] = [];
    const t = await start(
      async (step) => {
        const { text } = await ask(step, {
          onStatus: (text) => {
            seen.push(text);
            step.status(`bob: ${text}`);
          },
        });
        await step.sleep("later", "1h");
        return text;
      },
      { policy: { statusEverySec: 0 } },
    );
    const bob = await t.delegation();
    await bob.status("one");
    await t.skip("1m");
    await bob.status("two");
    await t.skip("1m");
    await bob.complete("done");
    assert.equal((await t.outcome()).text, "done");
    assert.deepEqual([...new Set(seen)], ["one", "two"]);
    assert.deepEqual(
      t.events.map(({ content }) => content),
      ["", "bob: one", "bob: two", "done"],
    );
  });

  test("is passed on though the handler has yet to go through other open steps", async () => {
    const t = await start(
      async (step) => {
        const bob = ask(step, { onStatus: (text) => step.status(text) });
        await Promise.race([bob, step.sleep("night", "8h")]);
        await setImmediate(); // what has come for bob is told by now
        await step.delegate("cat", { to: "acme-cat", skill: "cat/task", message: "too" });
        return (await bob).text;
      },
      { policy: { statusEverySec: 0 } },
    );
    const bob = await t.delegation("bob");
    await bob.accept();
    await t.skip("8h");
    const cat = await t.delegation("cat");
    await bob.status("one");
    await t.untilWaiting();
    assert.equal(t.events.at(-1)?.content, "one");
    await cat.complete();
    await bob.complete("done");
    assert.equal((await t.outcome()).text, "done");
  });

  test("that nobody wants is neither stored nor wakes anybody", async () => {
    const t = await start((step) => ask(step));
    const bob = await t.delegation();
    await bob.status("one");
    const before = t.log.length;
    await bob.status("two");
    await t.untilWaiting();
    assert.equal(t.log.slice(before).filter(({ message }) => /taken over/.test(message)).length, 0);
  });

  test("in a flood is thinned out", async () => {
    const seen = new Set<string>();
    const t = await start((step) => ask(step, { onStatus: (text) => void seen.add(text) }));
    const bob = await t.delegation();
    for (let n = 0; n < 50; n++) await bob.status(`${n}`);
    await t.skip("2s");
    await bob.status("last");
    await t.skip("1s");
    assert.ok(seen.size >= 2 && seen.size <= 4, [...seen].join());
    assert.ok(seen.has("last"));
  });
});
