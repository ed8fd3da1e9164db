import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as z from "zod";
import { defineAgent, type Outcome, type Step, skill } from "../../shared/agents/index.ts";
import { MAX_LABEL } from "../../shared/steps/artifacts.ts";
import type { WorkHint } from "../../shared/tasks/messages.ts";
import { startWorld, type World } from "../support/world.ts";

/** What the one agent of this file does; each test sets it. */
let handle: (step: Step) => unknown = () => "";

/** A handler's return value as it is; anything else that one gives is text, or data. */
class Made {
  readonly outcome: Outcome;
  constructor(outcome: Outcome) {
    this.outcome = outcome;
  }
}

const agent = defineAgent({
  id: "probe",
  description: "Does what the test says",
  skills: {
    task: skill({
      name: "Task",
      description: "",
      input: z.string(),
      run: async (_task, step) => {
        const made = await handle(step);
        if (made instanceof Made) return made.outcome;
        return typeof made === "string" ? made : { data: made };
      },
    }),
  },
});

describe("steps", () => {
  let world: World;
  before(async () => {
    world = await startWorld([agent]);
  });
  after(() => world.stop());

  const outcome = async (handler: typeof handle) => {
    handle = handler;
    const taskId = await world.run();
    const last = (await world.peer.events(taskId)).at(-1)?.event;
    return { taskId, last, entries: await world.store.entries(taskId, 1) };
  };
  /** Admits a task for this handler; gives its first hint. */
  const admitted = async (handler: typeof handle): Promise<WorkHint> => {
    handle = handler;
    const message = world.task();
    await world.admit(message);
    world.hints.splice(0);
    return { taskId: message.taskId, epoch: 0, beat: 0 };
  };
  const last = async (taskId: string) => (await world.peer.events(taskId)).at(-1)?.event;
  const refused = async (handler: typeof handle, message: RegExp) => {
    const { last } = await outcome(handler);
    assert.equal(last?.state, "TASK_STATE_FAILED");
    assert.equal(last?.error?.code, "internal");
    assert.match(last?.error?.message ?? "", message);
  };

  test("of one name after each other are told apart by number", async () => {
    const { last, entries } = await outcome(async (step) => {
      const all = [];
      for (const n of [1, 2, 3]) all.push(await step.run("again", () => n));
      return all;
    });
    assert.equal(last?.content, "[1,2,3]");
    const names = entries.flatMap(({ steps }) => steps ?? []).map(({ name }) => name);
    assert.deepEqual(names, ["again", "again#2", "again#3"]);
  });

  test("of different names may run at once, and share entries", async () => {
    const { last, entries } = await outcome(async (step) => {
      const some = Array.from({ length: 50 }, (_, n) => step.run(`part ${n}`, async () => n));
      return (await Promise.all(some)).reduce((sum, n) => sum + n, 0);
    });
    assert.equal(last?.content, "1225");
    assert.ok(entries.length < 20, `${entries.length} entries`);
  });

  test("whose function throws are stored as failed, and the handler may go on", async () => {
    const { last, entries } = await outcome(async (step) => {
      const failed = await step
        .run("bad", () => Promise.reject(new Error("no")), { retry: false })
        .catch((error: Error) => error.message);
      return await step.run("good", () => `after ${failed}`);
    });
    assert.equal(last?.content, "after no");
    assert.deepEqual(
      entries.flatMap(({ steps }) => steps ?? []).map(({ name, error }) => `${name} ${error?.message}`),
      ["bad no", "good undefined"],
    );
  });

  test("keep a large result by reference, and give it back whole on a takeover", async () => {
    const big = "x".repeat(700_000);
    let runs = 0;
    handle = async (step) => {
      const got = await step.run("big", () => {
        runs++;
        return big;
      });
      return await step.run("length", () => String(got.length));
    };
    const message = world.task();
    await world.admit(message);
    world.hints.splice(0);
    // The invocation is over after the first step: the task is left and offered at once.
    let asked = 0;
    const now = () => Date.now() + (asked++ > 25 ? 1_000_000 : 0);
    await world.work(
      { taskId: message.taskId, epoch: 0, beat: 0 },
      { clock: { ...world.clock, now }, endsAt: Date.now() + 20_000 },
    );
    for (let taken = world.hints.shift(); taken !== undefined; taken = world.hints.shift())
      await world.work(taken.hint);
    const last = (await world.peer.events(message.taskId)).at(-1)?.event;
    assert.equal(last?.content, "700000");
    assert.equal(runs, 1);
  });

  test("refuse what an author gets wrong, in words", async () => {
    await refused((step) => Promise.all([step.run("a", () => 1), step.run("a", () => 2)]), /"a".*still open/);
    await refused((step) => step.run("", () => 1), /name: expected 1 to 200 characters/);
    await refused((step) => step.run("x".repeat(201), () => 1), /name: expected 1 to 200 characters/);
    await refused((step) => step.run("n", () => ({ n: 1n })), /step "n".*bigint/);
    await refused(async (step) => {
      await step.artifact("a.b", "1");
      await step.artifact("a-b", "2");
    }, /"a-b": expected an id that no other artifact has/);
    await refused(async (step) => {
      for (const name of ["a", "a#2", "a"]) await step.run(name, () => 1);
    }, /step "a": expected a name other than "a#2", which another step has/);
    const long = "x".repeat(MAX_LABEL + 1);
    await refused((step) => step.artifact("a", { text: "", filename: long }), /filename: .* at most 255/);
    await refused(
      (step) => step.artifact("a", { text: "", mediaType: `text/${long}` }),
      /mediaType: .* at most 255/,
    );
    const metrics = Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`metric ${n}`, n]));
    await refused(
      () => new Made({ metrics }),
      /result: expected 0 artifacts and 100000 metrics to be described in/,
    );
  });

  test("called after the handler has returned do nothing to the task", async () => {
    const late = Promise.withResolvers<unknown>();
    const { last } = await outcome((step) => {
      setTimeout(() => step.run("late", () => 1).then(late.resolve, late.resolve), 200);
      return "early";
    });
    assert.equal(last?.content, "early");
    assert.match(String(await late.promise), /called after the handler had ended/);
  });

  test("with a name of the longest kind are taken", async () => {
    const { last } = await outcome((step) => step.run("x".repeat(200), () => "fits"));
    assert.equal(last?.content, "fits");
  });

  test("with labels of the greatest length are taken", async () => {
    const filename = "é".repeat(MAX_LABEL);
    const mediaType = `text/${"x".repeat(MAX_LABEL - 5)}`;
    const { last } = await outcome((step) => step.artifact("a", { text: "", filename, mediaType }));
    assert.equal(last?.state, "TASK_STATE_COMPLETED");
    assert.deepEqual(last?.result?.artifacts?.[0]?.name, filename);
  });

  test("that nobody waits for may fail, and come too late, without harm", { timeout: 60_000 }, async () => {
    const late = Promise.withResolvers<string>();
    const hint = await admitted(async (step) => {
      void step.run("fails", () => Promise.reject(new Error("nobody waits for this")));
      const early = step.run("fails early", () => Promise.reject(new Error("caught later")), {
        retry: false,
      });
      await step.run("takes longer", () => new Promise((resolve) => setTimeout(resolve, 20)));
      const caught = await early.catch((error: Error) => error.message);
      void step.run("late", () => late.promise);
      await new Promise((resolve) => setTimeout(resolve, 20));
      return caught;
    });
    let putting = 0;
    let most = 0;
    const append: World["store"]["append"] = async (taskId, entry, expiresAt) => {
      most = Math.max(most, ++putting);
      if (entry.end !== undefined) {
        // The step comes back while the end is being put.
        late.resolve("too late");
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return world.store.append(taskId, entry, expiresAt).finally(() => putting--);
    };
    await world.work(hint, { store: { ...world.store, append } });
    assert.equal((await last(hint.taskId))?.content, "caught later");
    assert.equal(most, 1, "one entry is put at a time");
    const entries = await world.store.entries(hint.taskId, 1);
    assert.deepEqual(
      entries
        .flatMap(({ steps }) => steps ?? [])
        .map(({ name }) => name)
        .sort(),
      ["fails early", "takes longer"],
    );
  });

  test("wait for a bucket that cannot be reached for a while", async () => {
    let failures = 0;
    const values: World["values"] = {
      ...world.values,
      put: (...args) => (failures++ < 2 ? Promise.reject(new Error("no bucket")) : world.values.put(...args)),
    };
    const hint = await admitted((step) => step.artifact("report", "fine"));
    await world.work(hint, { values });
    assert.equal((await last(hint.taskId))?.state, "TASK_STATE_COMPLETED");
    assert.equal((await world.store.head(hint.taskId))?.epoch, 1, "by the same worker");
  });

  test("leave the task to another worker when a bucket is out of reach to the end", async () => {
    const noBucket = new Error("no bucket");
    const values: World["values"] = { ...world.values, get: () => Promise.reject(noBucket) };
    // The result's text is that of its artifact, which cannot be read.
    const hint = await admitted(async (step) => {
      await step.artifact("report", "fine");
      return new Made({});
    });
    // There is time for the handler, and none to wait.
    const endsAt = world.now() + world.timing.marginMs + 50;
    await assert.rejects(world.work(hint, { values, endsAt }), noBucket);
    assert.equal((await last(hint.taskId))?.state, "TASK_STATE_WORKING");
    await world.work({ ...hint, epoch: 1 });
    assert.equal((await last(hint.taskId))?.content, "fine");
  });

  test("end the task in words whatever is thrown", async () => {
    const strange = Object.assign(new Error(), { message: Symbol("strange") });
    await refused(() => Promise.reject(strange), /Symbol\(strange\)/);
    const mute = new Proxy(new Error("mute"), {
      get(target, key) {
        if (key === "message") throw new Error("no");
        return Reflect.get(target, key);
      },
    });
    await refused(() => Promise.reject(mute), /does not say what it is/);
    await refused(() => Promise.reject(undefined), /threw undefined/);
    await refused(() => Promise.reject(null), /threw null/);
    await refused(() => Promise.reject({ message: "plain" }), /threw plain/);
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    await refused(() => Promise.reject(proxy), /./);
    await refused((step) => step.run("revoked", () => Promise.reject(proxy)), /./);
  });

  test("with half a surrogate pair in a message end all the same, and in a name are refused", async () => {
    await refused(() => JSON.parse("😀"), /Unexpected token '\ufffd'/);
    await refused(() => Promise.reject(new Error(`${"x".repeat(1_992)}😀😀`)), /x\ufffd…$/);
    await refused((step) => step.run("half \ud83d", () => 1), /name: expected/);
    const { last } = await outcome(async (step) => {
      await step.artifact("half \ud83d", "whole");
      return "";
    });
    assert.equal(last?.state, "TASK_STATE_FAILED");
  });

  test("give out 500 artifacts and no more, whatever the result says of them", async () => {
    const { last } = await outcome(async (step) => {
      const names = Array.from({ length: 500 }, (_, n) => `part-${n}`);
      await Promise.all(names.map((name) => step.artifact(name, "x".repeat(1_500))));
    });
    assert.equal(last?.state, "TASK_STATE_COMPLETED");
    assert.equal(last?.result?.artifacts?.length, 500);
    await refused(async (step) => {
      for (let n = 0; n <= 500; n++) await step.artifact(`part-${n}`, "x");
    }, /expected at most 500 in a task/);
  });

  test("refuse parts that are none, and keep folders and control characters out of names", async () => {
    for (const part of [
      null,
      { data: undefined },
      { text: 1 },
      { bytes: "x", mediaType: "a/b" },
      { text: "", mediaType: "x" },
    ])
      await refused((step) => step.artifact("a", part as never), /artifact "a": a part: expected/);
    const { taskId } = await outcome(async (step) => {
      await step.artifact("a", { text: "x", filename: "../../etc/\u001b[31mpasswd\n" });
      return "done";
    });
    const artifact = (await world.peer.events(taskId)).find(({ event }) => event.kind === "artifact")?.event
      .artifact;
    assert.equal(artifact?.name, "[31mpasswd");
  });

  test("log what cannot be looked at without harm", async () => {
    const { last } = await outcome((step) => {
      step.log("strange", {
        get field(): string {
          throw new Error("no");
        },
      });
      return "fine";
    });
    assert.equal(last?.content, "fine");
  });
});
