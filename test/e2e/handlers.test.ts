import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { ensureStreams } from "../../shared/nats/index.ts";
import type { TaskRequest } from "../../shared/wire/index.ts";
import { run } from "../cli/run.ts";
import { type Sluice, startSluice } from "../support/sluice.ts";
import { assertWhole, readTraces, STEPPER } from "../support/stage.ts";

const FAULTY = "acme-faulty";
/** Workers that die are replaced after a lease, five times: the end of such a task takes its time. */
const WITHIN_MS = 240_000;
const NEIGHBOURS = 6;
const NEIGHBOUR = { steps: 3, stepMs: 100 };

type Expected = "completed" | { readonly code: string; readonly says: RegExp };

/** What goes wrong, in the agent `faulty`, and how its task must end. */
const CASES: readonly {
  readonly title: string;
  readonly fault: string;
  readonly delivery?: TaskRequest["delivery"];
  readonly ends: Expected;
}[] = [
  { title: "throws", fault: "throw", ends: { code: "internal", says: /^Error: it went wrong$/ } },
  {
    title: "throws an error that is hard to put in words",
    fault: "throw strangely",
    ends: { code: "internal", says: /Symbol\(strange\)/ },
  },
  { title: "leaves a step that fails to itself", fault: "fail unawaited", ends: "completed" },
  {
    title: "throws in a timer",
    fault: "fail in a timer",
    ends: { code: "internal", says: /^Error: nobody catches this$/ },
  },
  {
    title: "forgets a promise that rejects",
    fault: "fail in a promise",
    ends: { code: "internal", says: /^Error: nobody catches this$/ },
  },
  {
    title: "hangs past the task's deadline",
    fault: "hang",
    delivery: { timeoutSec: 3 },
    ends: { code: "timeout", says: /not done within 3 s/ },
  },
  {
    title: "spins without yielding",
    fault: "spin",
    ends: { code: "internal", says: /died 5 times in a row in step "go wrong"/ },
  },
  {
    title: "spins past the task's deadline, after a step",
    fault: "spin after a step",
    delivery: { timeoutSec: 5 },
    ends: { code: "timeout", says: /not done within 5 s/ },
  },
  {
    title: "exhausts its heap",
    fault: "exhaust the heap",
    ends: { code: "internal", says: /died 5 times in a row in step "go wrong"/ },
  },
  {
    title: "exhausts its memory outside the heap",
    fault: "exhaust the memory",
    ends: { code: "internal", says: /died 5 times in a row in step "go wrong"/ },
  },
  {
    title: "exits the process",
    fault: "exit",
    ends: { code: "internal", says: /died 5 times in a row in step "go wrong"/ },
  },
  {
    title: "returns a function",
    fault: "return a function",
    ends: { code: "internal", says: /expected what JSON can hold, got a function under "do"/ },
  },
  {
    title: "returns a cycle",
    fault: "return a cycle",
    ends: { code: "internal", says: /expected what JSON can hold.*circular/i },
  },
  { title: "floods status", fault: "flood", ends: "completed" },
];

describe("a handler", () => {
  let sluice: Sluice;
  const tasks = new Map<string, string>();
  const neighbours = new Map<string, string>();

  const sendNeighbour = async () => {
    const file = join(sluice.dataDir, `neighbour-${neighbours.size}.jsonl`);
    const a2a = { parts: [{ data: { file, ...NEIGHBOUR } }] };
    const { taskId } = await sluice.peer.ask(STEPPER, { a2a, channelRef: "stepper" });
    neighbours.set(taskId, file);
  };

  before(async () => {
    sluice = await startSluice();
    await ensureStreams(await jetstreamManager(sluice.peer.nc));
    for (const [index, { fault, delivery }] of CASES.entries()) {
      const request = { a2a: { parts: [{ data: { fault } }] }, channelRef: "faulty" };
      const { taskId } = await sluice.peer.ask(FAULTY, { ...request, ...(delivery && { delivery }) });
      tasks.set(fault, taskId);
      if (index % Math.ceil(CASES.length / NEIGHBOURS) === 0) await sendNeighbour();
    }
  });
  after(() => sluice.stop());

  for (const { title, fault, ends } of CASES)
    test(`that ${title} ends its task once, for all to see`, async () => {
      const taskId = tasks.get(fault) ?? "";
      const events = await sluice.peer.outcome(taskId, { timeoutMs: WITHIN_MS });
      assertWhole(events);
      const last = events.at(-1)?.event;
      const shown = await run(["status", taskId, "--nats", sluice.nats.url]);
      assert.equal(shown.code, 0, shown.stderr);
      const [headline = ""] = shown.stdout.split("\n");
      if (ends === "completed") {
        assert.equal(last?.state, "TASK_STATE_COMPLETED");
        assert.equal(headline, `${taskId}  completed`);
        return;
      }
      assert.equal(last?.state, "TASK_STATE_FAILED");
      assert.equal(last?.error?.code, ends.code);
      assert.match(last?.error?.message ?? "", ends.says);
      assert.equal(headline, `${taskId}  failed`);
      assert.ok(shown.stdout.includes(`${ends.code}: `), shown.stdout);
    });

  test("that floods status is told by few events, the newest text among them", async () => {
    const events = await sluice.peer.outcome(tasks.get("flood") ?? "", { timeoutMs: WITHIN_MS });
    assert.ok(events.length < 1_000, `${events.length} events for 100,000 texts`);
    assert.equal(events.findLast(({ event }) => event.kind === "status")?.event.content, "at 100000");
  });

  test("that spins is ended by its own process, long before the function's timeout", () => {
    assert.ok(sluice.lines.some((line) => line.includes("a handler has not yielded for")));
    assert.ok(!sluice.lines.some((line) => line.includes("timed out after 900")));
  });

  test("does not hurt the tasks beside it: each is done, in one run", async () => {
    await sendNeighbour(); // and one that comes after all of this
    for (const [taskId, file] of neighbours) {
      const events = await sluice.peer.outcome(taskId, { timeoutMs: WITHIN_MS });
      assertWhole(events);
      assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
      const steps = readTraces(file).map(({ step }) => step);
      assert.deepEqual(steps, ["step 1", "step 2", "step 3"], taskId);
    }
  });
});
