import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { type FunctionDeclaration, readStack } from "../../infra/local/stack.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { type Sluice, startSluice, testAssembly } from "../support/sluice.ts";
import { until } from "../support/until.ts";
import { besideClients } from "./cold/beside.ts";
import { importTime, sizesOf } from "./cold/bundle.ts";
import { thaws } from "./cold/thaw.ts";
import { median, say } from "./print.ts";
import { Recording } from "./recording.ts";

const KB = 1_024;
const QUEUES = "http://127.0.0.1:1/000000000000";

export interface ColdOptions {
  readonly rounds: number;
}

/** What a function's start costs: the bundle, its import, and the first invocation in a new process. */
export async function benchCold({ rounds }: ColdOptions): Promise<void> {
  const { functions } = readStack(await testAssembly(), QUEUES);
  const own = functions.filter(({ codeDir }) => codeDir !== "");
  const out = new Recording("cold");
  say(`importing each function's bundle in a new process, ${rounds} times …`);
  const imports = new Map(
    own.map((one) => [one.name, median(Array.from({ length: rounds }, () => importTime(one).ms))]),
  );
  const runs: Said[][] = [];
  for (let round = 1; round <= rounds; round++) {
    say(`first invocations, round ${round} of ${rounds} …`);
    runs.push(await firstInvocations(own));
  }
  const of = (name: string, what: (said: Said) => number) =>
    median(runs.flatMap((run) => run.filter((said) => said.name === name).map(what)));
  out.table(
    [
      "FUNCTION",
      "BUNDLE, KB",
      "GZIP, KB",
      "AT START, KB",
      "IMPORT, MS",
      "PROCESS READY, MS",
      "FIRST, MS",
      "NEXT, MS",
    ],
    own.map((one) => {
      const { all, zipped, atStart } = sizesOf(one.codeDir);
      const { name } = one;
      const times = [imports.get(name) ?? Number.NaN, ...TIMES.map((what) => of(name, what))];
      out.figure(`${name} import ms`, imports.get(name) ?? Number.NaN);
      return [name, all / KB, zipped / KB, atStart / KB, ...times.map((ms) => (Number.isNaN(ms) ? "" : ms))];
    }),
  );
  out.note(
    "Bundle: all of its files without source maps. At start: what is imported before the first invocation; the rest " +
      "only when it is needed. Import: in a process that has started. Process ready: from starting the process until it " +
      "asks for work. First: the first invocation, which also connects to NATS and the parts; next: one after it. " +
      "bridge runs for as long as its invocation may, so its invocations are not timed.",
  );
  await besideClients(own, rounds, out);
  say(`thawing, ${rounds} times …`);
  const thawed = await thaws(rounds);
  out.table(
    ["SANDBOX", "PUBLISHED AFTER, MS"],
    thawed.map(({ what, ms }) => [what, median(ms)]),
  );
  for (const { what, ms } of thawed) out.figure(`${what} ms`, median(ms));
  out.note(
    "Published after: from the invocation's start until the stream holds its event. After a pause a connection must " +
      "first answer; one that does not within a second is dead, and another is made.",
  );
  out.save();
}

/** What the host has reported of the first two invocations of a function, in milliseconds. */
interface Said {
  readonly name: string;
  readonly init: number;
  readonly first: number;
  readonly next: number;
}
const TIMES: readonly ((said: Said) => number)[] = [
  ({ init }) => init,
  ({ first }) => first,
  ({ next }) => next,
];

/** A product that has just started; each of its functions is used twice, one after the other. */
async function firstInvocations(functions: readonly FunctionDeclaration[]): Promise<Said[]> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-cold-"));
  const sluice = await startSluice({ timeScale: 1 });
  try {
    await ensureStreams(await jetstreamManager(sluice.peer.nc));
    for (let n = 1; n <= 2; n++) await useAll(sluice, join(folder, `log-${n}`));
    return functions.map(({ name }) => saidOf(name, sluice.lines));
  } finally {
    await sluice.stop();
    rmSync(folder, { recursive: true });
  }
}

/** A task that is handed on to another agent, a control, a look of `sweep`: in it every function takes part. */
async function useAll({ peer, host }: Sluice, file: string): Promise<void> {
  const message = { to: "acme-stepper", message: { file, steps: 1, artifact: false } };
  const { taskId } = await peer.ask("acme-boss", {
    channelRef: "boss",
    a2a: { message: { parts: [{ data: message }] } },
    delivery: { maxDelegationDepth: 1 },
  });
  await peer.outcome(taskId);
  const before = (await peer.events(taskId)).length;
  const { state, revision } = (await peer.events(taskId)).at(-1)?.event ?? { state: "none", revision: 0 };
  if (state !== "TASK_STATE_COMPLETED") throw new Error(`the task ended as ${state}`);
  await peer.control("acme-boss", taskId, "status", revision + 1);
  await until("the control is answered", async () => (await peer.events(taskId)).length > before);
  const sweep = host.functions().find(({ name }) => name.endsWith("sweep"));
  if (sweep !== undefined) await host.invoke(sweep.name, {});
}

function saidOf(name: string, lines: readonly string[]): Said {
  const reports = lines.filter((line) => line.startsWith(`${name}: REPORT`));
  const duration = (line = "") => Number(/\tDuration: ([\d.]+) ms/.exec(line)?.[1] ?? Number.NaN);
  const cold = reports.find((line) => line.includes("Init Duration"));
  const init = Number(/Init Duration: ([\d.]+) ms/.exec(cold ?? "")?.[1] ?? Number.NaN);
  return { name, init, first: duration(cold), next: duration(reports.at(-1)) };
}
