import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { defineAgent, skill } from "sluice";
import { startTask } from "sluice/testing";
import * as z from "zod";
import { type HitlEntry, readExtensions } from "../../shared/remotes/extensions.ts";
import { type About, hold } from "../../shared/remotes/hitl/hold.ts";
import { effectiveMode, holdingOf, MIN_VETO_TTL_MS } from "../../shared/remotes/hitl/mode.ts";
import {
  BLAST_RADII,
  type BlastRadius,
  HITL_MODES,
  type HitlMode,
} from "../../shared/remotes/hitl/scales.ts";

const BASE = "https://proto-labs.ai/a2a/ext";
const strictness = (mode: HitlMode) => HITL_MODES.indexOf(mode);
const isFar = (radius: BlastRadius | undefined) =>
  radius !== undefined && BLAST_RADII.indexOf(radius) >= BLAST_RADII.indexOf("repo");
const modes = fc.option(fc.constantFrom(...HITL_MODES), { nil: undefined });
const radii = fc.option(fc.constantFrom(...BLAST_RADII), { nil: undefined });

describe("which mode holds", () => {
  test("of each declaration at each reach", () => {
    const table = (declared: HitlMode | undefined) =>
      [undefined, ...BLAST_RADII].map((radius) => effectiveMode(declared, radius));
    assert.deepEqual(table(undefined), [
      "notification",
      "notification",
      "notification",
      "gated",
      "gated",
      "gated",
    ]);
    assert.deepEqual(table("autonomous"), [
      "notification",
      "autonomous",
      "autonomous",
      "notification",
      "notification",
      "notification",
    ]);
    for (const mode of HITL_MODES.slice(1)) assert.deepEqual(new Set(table(mode)), new Set([mode]));
  });

  test("undeclared is never autonomous, and gated from repo on; nothing far is done in silence", () => {
    fc.assert(
      fc.property(modes, radii, (declared, radius) => {
        const mode = effectiveMode(declared, radius);
        if (declared === undefined) assert.notEqual(mode, "autonomous");
        if (declared === undefined && isFar(radius)) assert.equal(mode, "gated");
        if (isFar(radius)) assert.notEqual(mode, "autonomous");
        if (declared !== undefined) assert.ok(strictness(mode) >= strictness(declared));
      }),
    );
  });

  test("the operator's file makes it stricter, and never less", () => {
    const says = fc.record({ mode: modes, radius: radii });
    fc.assert(
      fc.property(modes, radii, fc.array(says, { maxLength: 3 }), (declared, radius, file) => {
        const card = {
          hitl: declared === undefined ? [] : [{ skill: "a", mode: declared }],
          blast: radius === undefined ? [] : [{ skill: "a", radius }],
        };
        const own = holdingOf("a", card);
        const both = holdingOf("a", card, file);
        for (const { mode } of file)
          if (mode !== undefined) assert.ok(strictness(both.mode) >= strictness(mode));
        const reach = (of: BlastRadius | undefined) => (of === undefined ? -1 : BLAST_RADII.indexOf(of));
        assert.ok(reach(both.radius) >= reach(own.radius));
        // To say that something reaches near, where nobody did, is what lets a card's own word count.
        if (radius !== undefined) assert.ok(strictness(both.mode) >= strictness(own.mode));
        if (declared === undefined) assert.notEqual(both.mode, "autonomous");
      }),
    );
  });

  test("an entry that cannot be read is held as the strictest, whatever stands in it", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (rubbish) => {
        fc.pre(!HITL_MODES.some((mode) => mode === rubbish));
        const entry = { skills: { deploy: { mode: rubbish } } };
        const { extensions } = readExtensions([
          { uri: `${BASE}/hitl-mode-v1`, required: false, params: entry },
        ]);
        assert.equal(holdingOf("deploy", extensions).mode, "gated");
      }),
    );
    const { extensions } = readExtensions([
      { uri: `${BASE}/blast-v1`, required: false, params: { skills: { deploy: { radius: "tiny" } } } },
    ]);
    assert.deepEqual(holdingOf("deploy", extensions), {
      mode: "gated",
      radius: "public",
      reviewer: "requester",
    });
  });

  test("what cannot be read as a whole holds every skill as the strictest, whatever is said beside it", () => {
    const declared = (name: string, params: unknown) => ({ uri: `${BASE}/${name}`, required: false, params });
    const heldBy = (skill: string, ...of: ReturnType<typeof declared>[]) => {
      const { mode, radius } = holdingOf(skill, readExtensions(of).extensions);
      return [mode, radius];
    };
    const slip = { skills: [{ id: "deploy", mode: "gated", radius: "public" }] };
    const said = (mode: HitlMode) => declared("hitl-mode-v1", { skills: { deploy: { mode } } });
    const near = declared("blast-v1", { skills: { deploy: { radius: "self" } } });
    for (const skill of ["deploy", "other"])
      assert.deepEqual(heldBy(skill, declared("hitl-mode-v1", slip)), ["gated", undefined]);
    assert.deepEqual(heldBy("deploy", declared("hitl-mode-v1", slip), said("autonomous"), near), [
      "gated",
      "self",
    ]);
    assert.deepEqual(heldBy("deploy", declared("hitl-mode-v1", slip), said("compound")), [
      "compound",
      undefined,
    ]);
    assert.deepEqual(heldBy("deploy", declared("blast-v1", slip), near), ["gated", "public"]);
    assert.deepEqual(heldBy("deploy", declared("blast-v1", slip), said("autonomous")), [
      "notification",
      "public",
    ]);
    assert.deepEqual(heldBy("deploy", declared("hitl-mode-v1", undefined)), ["notification", undefined]);
  });

  test("a veto's window is the card's, a minute where it says none, and long enough for a person", () => {
    const of = (entry: Omit<HitlEntry, "skill">) =>
      holdingOf("a", { hitl: [{ skill: "a", ...entry }], blast: [] });
    assert.equal(of({ mode: "veto" }).vetoTtlMs, 60_000);
    assert.equal(of({ mode: "veto", vetoTtlMs: 120_000 }).vetoTtlMs, 120_000);
    assert.equal(of({ mode: "veto", vetoTtlMs: MIN_VETO_TTL_MS }).vetoTtlMs, MIN_VETO_TTL_MS);
    assert.equal(of({ mode: "veto", vetoTtlMs: MIN_VETO_TTL_MS - 1 }).vetoTtlMs, MIN_VETO_TTL_MS);
    assert.equal("vetoTtlMs" in of({ mode: "gated", vetoTtlMs: 120_000 }), false);
    assert.equal(of({ mode: "gated", reviewer: "operator" }).reviewer, "operator");
    assert.equal(of({ mode: "gated", reviewer: "somebody" }).reviewer, "requester");
  });
});

/** An agent that sends to a remote one what it is asked, and then two replies. */
const front = (about: Partial<About>, sent: string[]) =>
  defineAgent({
    id: "front",
    description: "Sends what it is given",
    skills: {
      task: skill({
        name: "Task",
        description: "",
        input: z.string(),
        run: async (task, step) => {
          for (const checkpoint of [1, 2, 3]) {
            await hold(step, {
              mode: "gated",
              reviewer: "requester",
              remote: "auditor",
              skill: "scan",
              what: task.input,
              ...about,
              checkpoint,
            });
            await step.run(`send ${checkpoint}`, () => sent.push(`send ${checkpoint}`));
          }
          return "done";
        },
      }),
    },
  });
const ALL = ["send 1", "send 2", "send 3"];

async function start(about: Partial<About>) {
  const sent: string[] = [];
  return { sent, task: await startTask(front(about, sent), { text: "all of it" }) };
}
const told = ({ events }: Awaited<ReturnType<typeof start>>["task"]) =>
  events.map(({ state, content }) => `${state.replace("TASK_STATE_", "")} ${content}`.trimEnd());

describe("a task is held before anything is sent", () => {
  test("autonomous: it goes ahead in silence", async () => {
    const { task, sent } = await start({ mode: "autonomous", radius: "self" });
    await task.outcome();
    assert.deepEqual(told(task), ["WORKING", "COMPLETED done"]);
    assert.deepEqual(sent, ALL);
  });

  test("notification: the requester is told, and it goes ahead", async () => {
    const { task, sent } = await start({ mode: "notification", radius: "repo" });
    task.crash({ before: "send 1" });
    task.crash({ after: "send 1" });
    await task.outcome();
    assert.deepEqual(told(task), [
      "WORKING",
      'WORKING auditor is given "scan", which reaches as far as: repo',
      "COMPLETED done",
    ]);
    assert.deepEqual(task.events[1]?.data, {
      hitl: { mode: "notification", remote: "auditor", skill: "scan", radius: "repo" },
    });
    assert.deepEqual(new Set(sent), new Set(ALL));
  });

  test("veto: nothing is sent within the window, and without a word it is sent after it", async () => {
    const { task, sent } = await start({ mode: "veto", vetoTtlMs: 120_000 });
    await task.untilWaiting();
    assert.match(
      task.question?.prompt ?? "",
      /^auditor is to be given "scan"\. It is sent in 120 s unless .*\n\nall of it$/s,
    );
    await task.skip(119_000);
    assert.deepEqual(sent, []);
    assert.equal((await task.outcome()).state, "TASK_STATE_COMPLETED");
    assert.deepEqual(sent, ALL);
    assert.match(told(task).at(-2) ?? "", /^WORKING no objection was made$/);
  });

  test("veto: an approval is not waited out, a denial or a cancel means that nothing is sent", async () => {
    const approved = await start({ mode: "veto" });
    const since = approved.task.now.getTime();
    await approved.task.approve();
    await approved.task.outcome();
    assert.ok(approved.task.now.getTime() - since < 60_000, "by the simulated clock");
    assert.deepEqual(approved.sent, ALL);

    const denied = await start({ mode: "veto" });
    await denied.task.approve(false, "not today");
    assert.deepEqual((await denied.task.outcome()).error, {
      code: "auth_not_satisfied",
      message: "not today",
    });
    const cancelled = await start({ mode: "veto" });
    await cancelled.task.untilWaiting();
    await cancelled.task.cancel();
    await cancelled.task.skip("1d");
    assert.equal((await cancelled.task.outcome()).state, "TASK_STATE_CANCELED");
    assert.deepEqual([...denied.sent, ...cancelled.sent], []);
  });

  test("gated: it is sent once it is approved, and a silence denies", async () => {
    const { task, sent } = await start({ mode: "gated", radius: "fleet" });
    await task.untilWaiting();
    await task.skip("23h");
    assert.deepEqual(sent, []);
    await task.approve();
    await task.outcome();
    assert.deepEqual(sent, ALL);

    for (const [about, patience] of [
      [{}, "1d"],
      [{ approvalMs: 60_000 }, "61s"],
    ] as const) {
      const silent = await start(about);
      await silent.task.untilWaiting();
      await silent.task.skip(patience);
      assert.equal((await silent.task.outcome()).error?.code, "auth_not_satisfied");
      assert.deepEqual(silent.sent, []);
    }
  });

  test("compound: it asks at each checkpoint, by its number", async () => {
    const { task, sent } = await start({ mode: "compound" });
    for (const checkpoint of [1, 2]) {
      await task.untilWaiting();
      assert.match(task.question?.prompt ?? "", new RegExp(`\\(checkpoint ${checkpoint}\\)`));
      assert.equal(sent.length, checkpoint - 1);
      await task.approve();
    }
    await task.untilWaiting();
    await task.skip("1d");
    assert.equal((await task.outcome()).error?.code, "auth_not_satisfied");
    assert.deepEqual(sent, ALL.slice(0, 2));
  });

  test("what is agreed to is not asked again of a worker that takes over", async () => {
    for (const mode of ["veto", "gated"] as const) {
      const { task } = await start({ mode });
      task.crash({ before: "send 1" });
      await task.approve();
      await task.outcome();
      assert.equal(task.crashes, 1);
      assert.equal(told(task).filter((text) => text.startsWith("AUTH_REQUIRED")).length, 1);
    }
  });

  test("a reviewer that is the operator is not the requester", async () => {
    for (const [mode, rule] of [
      ["gated", /unless the operator approves\./],
      ["veto", /unless the operator denies it, or you cancel the task\./],
    ] as const) {
      const { task, sent } = await start({ mode, reviewer: "operator" });
      await task.untilWaiting();
      assert.match(task.question?.prompt ?? "", rule);
      await task.approve();
      assert.match(task.events.at(-1)?.content ?? "", /^only the operator may approve this\.\n\n/);
      assert.deepEqual(sent, []);
      await task.approveAsOperator();
      await task.outcome();
      assert.deepEqual(sent, ALL);
    }
  });

  test("what is shown is bounded", async () => {
    const { task } = await start({ mode: "gated", what: "x".repeat(2_001) });
    await task.untilWaiting();
    assert.match(task.question?.prompt ?? "", /\n\nx{2000}…$/);
  });
});
