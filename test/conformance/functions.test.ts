import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import type { InvocationResult } from "../../infra/local/host.ts";
import { readStack } from "../../infra/local/stack.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { sizesOf } from "../bench/cold/bundle.ts";
import { type Sluice, startSluice, testAssembly } from "../support/sluice.ts";
import { until } from "../support/until.ts";
import { ricMain } from "./ric.ts";

/**
 * Every function starts from its bundle under AWS's runtime interface client, as in the managed runtime, with what the
 * template declares as its environment, and handles real events over the real parts. The same happens under the host's
 * own runtime (infra/local/runtime/bootstrap.ts), and comes to the same.
 */
const ric = ricMain();
const skip = ric === undefined && "aws-lambda-ric is not installed: npm run conformance does it";

/** What came of the same events under one of the runtimes. */
interface Came {
  /** Of a task that is handed on to another agent, and of a control. */
  readonly events: readonly string[];
  /** The answers to invocations. */
  readonly answers: ReadonlyMap<string, InvocationResult>;
  /** How often each function has ended an invocation well; on a machine that is busy one may take too long. */
  readonly ended: ReadonlyMap<string, number>;
}

describe("under AWS's runtime interface client", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-conformance-"));
  let theirs: Came;
  let ours: Came;
  before(async () => {
    if (ric !== undefined) theirs = await runUnder([ric], join(folder, "theirs"));
    ours = await runUnder(undefined, join(folder, "ours"));
  });
  after(() => rmSync(folder, { recursive: true }));

  const names = ["admit", "bridge", "cards", "control", "events", "sweep", "work", "work-narrow"];

  test("every function handles its events", () => {
    assert.deepEqual([...theirs.ended.keys()].toSorted(), names);
    for (const [name, well] of theirs.ended) assert.ok(well > 0, name);
  });

  test("each has started from its bundle, which is as large as is told here", async (t) => {
    const { functions } = readStack(await testAssembly(), "");
    assert.deepEqual(functions.map(({ name }) => name).toSorted(), names);
    for (const { name, codeDir } of functions) {
      const { all, zipped, atStart } = sizesOf(codeDir);
      assert.ok(atStart > 0 && atStart <= all);
      t.diagnostic(`${name}: ${kB(all)}, ${kB(zipped)} zipped; a start loads ${kB(atStart)}`);
    }
  });

  test("a task that is handed on, and a control, end as under our own runtime", () => {
    assert.ok(theirs.events.length > 0);
    assert.deepEqual(theirs.events, ours.events);
  });

  test("what is answered to an invocation, and to a bad one, is what our own runtime answers", () => {
    assert.equal(theirs.answers.size, 6);
    assert.deepEqual(theirs.answers, ours.answers);
  });
});

const kB = (bytes: number) => `${Math.round(bytes / 1_000)} kB`;

async function runUnder(runtime: readonly string[] | undefined, file: string): Promise<Came> {
  const sluice = await startSluice(runtime === undefined ? {} : { runtime });
  try {
    await ensureStreams(await jetstreamManager(sluice.peer.nc));
    const events = await useAll(sluice, file);
    const names = sluice.host.functions().map(({ name }) => name);
    // The bridge's invocation lasts as long as it may.
    const ended = (name: string) => reports(sluice, name) - errors(sluice, name);
    await until("each function has ended an invocation", () => names.every((name) => ended(name) > 0));
    const all = new Map(names.map((name) => [name, ended(name)]));
    return { events, ended: all, answers: await answers(sluice) };
  } finally {
    await sluice.stop();
  }
}

/**
 * A task for an agent with a function of its own; one that is handed on to another agent and comes back, and a question
 * after it: in them all but `sweep` take part.
 */
async function useAll({ peer }: Sluice, file: string): Promise<string[]> {
  const narrow = { file, workMs: 1 };
  const own = await peer.ask("acme-narrow", { channelRef: "narrow", a2a: { parts: [{ data: narrow }] } });
  await peer.outcome(own.taskId);
  const message = { to: "acme-stepper", message: { file, steps: 1, artifact: false } };
  const { taskId } = await peer.ask("acme-boss", {
    channelRef: "boss",
    a2a: { message: { parts: [{ data: message }] } },
    delivery: { maxDelegationDepth: 1 },
  });
  const outcome = await peer.outcome(taskId);
  const { revision = 0 } = outcome.at(-1)?.event ?? {};
  await peer.control("acme-boss", taskId, "status", revision + 1);
  await until("the control is answered", async () => (await peer.events(taskId)).length > outcome.length);
  // Progress is told or merged as time would have it.
  const told = (await peer.events(taskId)).filter(({ event }) => event.kind !== "status");
  return told.map(({ event }) => `${event.kind} ${event.state}`);
}

const reports = ({ lines }: Sluice, name: string) =>
  lines.filter((line) => line.startsWith(`${name}: REPORT`)).length;
const errors = ({ lines }: Sluice, name: string) =>
  lines.filter((line) => line.startsWith(`${name}: ERROR RequestId`)).length;

/** What is answered to the schedule's event, to an empty batch, and to an event that no queue has. */
async function answers({ host }: Sluice): Promise<Map<string, InvocationResult>> {
  const events = { "a schedule": ["sweep", {}], "no messages": ["work", { Records: [] }] } as const;
  const answered = new Map<string, InvocationResult>();
  for (const [what, [name, event]] of Object.entries(events))
    answered.set(what, await host.invoke(name, event));
  for (const name of ["admit", "control", "events", "work"])
    answered.set(`${name}: no event`, await host.invoke(name, {}));
  return answered;
}
