import { availableParallelism } from "node:os";
import { cpuOf, natsServers } from "./cpu.ts";
import { Crew, EXECUTOR } from "./floor/crew.ts";
import { invocationsPerSecond } from "./floor/invocations.ts";
import type { PartCall, Way } from "./floor/orders.ts";
import { readScript } from "./floor/script.ts";
import { QueueTraffic } from "./floor/traffic.ts";
import { Load, type Seen } from "./load.ts";
import { median, say } from "./print.ts";
import { Recording } from "./recording.ts";

const AGENT = "counted";
const LANES = 32;
/**
 * With these the floor is at its best on two processors (docs/benchmarks.md): what a further process computes beside them,
 * its own compiling and collecting, is time that they lack.
 */
const SIZES = { bridge: 1, admit: 1, work: availableParallelism(), measure: 2 };
/** Tasks a round, by how many are under way; scaled by the option. */
const TASKS: readonly (readonly [inFlight: number, tasks: number])[] = [
  [1, 60],
  [16, 240],
  [256, 1_536],
];
/** Before that: with fewer V8 still compiles, which costs the product more than what is smaller. */
const WARMING_UP = 4_096;

export interface FloorOptions {
  readonly rounds: number;
  /** Which part of the usual number of tasks and calls is done. */
  readonly share: number;
}

const ROLES = ["bridge", "admit", "work"] as const;

/** What does the tasks of a round. */
type Doer = "product" | Way;
const DOERS: readonly Doer[] = ["product", "sdk", "bare"];
const NAMES: Readonly<Record<Doer, string>> = {
  product: "the product",
  sdk: "the floor, with the AWS SDK",
  bare: "the floor, with bare requests",
};

interface Round {
  readonly perSecond: number;
  readonly ms: number;
  /** Of processor time, a task, by what the processes are for. */
  readonly cpu: ReadonlyMap<string, number>;
  readonly requests: Readonly<Record<string, number>>;
}

/**
 * The whole product beside processes that make the same calls to the same parts and do nothing else, in turns; and
 * what each part can do alone.
 */
export async function benchFloor({ rounds, share }: FloorOptions): Promise<void> {
  say("writing down what a task asks of the parts …");
  const script = await readScript(AGENT);
  const load = await Load.start(AGENT);
  const traffic = new QueueTraffic();
  let crew: Crew | undefined;
  try {
    const out = new Recording("floor", load.sluice.peer.nc.info?.version);
    const most = Math.max(...TASKS.map(([inFlight]) => inFlight));
    say(`warming up the product with ${most} tasks under way …`);
    await load.run(scaled(WARMING_UP, share), scaled(most, share));
    say("starting the floor's processes …");
    crew = await Crew.start(load, script, SIZES);
    for (const way of WAYS) {
      crew.use(way);
      await load.run(scaled(WARMING_UP, share), scaled(most, share), { executor: EXECUTOR });
    }
    const bounds = await capacities(out, crew, share);
    for (const [inFlight, tasks] of TASKS)
      await compare(out, { load, crew, traffic, inFlight, rounds, bounds, tasks: scaled(tasks, share) });
    out.note(
      `The floor's processes: ${SIZES.bridge} bridge, ${SIZES.admit} admit, ${SIZES.work} work. Product and floor use the ` +
        "same stand-ins, and SQS's runs in this process.",
    );
    out.save();
  } finally {
    crew?.stop();
    traffic.stop();
    await load.sluice.stop();
  }
}

function scaled(count: number, share: number): number {
  return Math.max(1, Math.round(count * share));
}

const CALLS: readonly { part: PartCall; what: string; count: number; messages: number }[] = [
  { part: "put", what: "DynamoDB: conditional puts of a head", count: 1_500, messages: 1 },
  { part: "update", what: "DynamoDB: claims, an update each", count: 1_500, messages: 1 },
  { part: "queueTen", what: "SQS: messages sent, received, removed by tens", count: 150, messages: 10 },
  { part: "queue", what: "SQS: messages sent, received, removed alone", count: 1_000, messages: 1 },
  { part: "publish", what: "JetStream: acknowledged publishes", count: 5_000, messages: 1 },
  { part: "ack", what: "JetStream: confirmed acknowledgements", count: 2_000, messages: 1 },
];

/** How often a task of one step needs each; its peer's own publish is one of three. */
const NEEDS: Readonly<Record<PartCall, number>> = {
  put: 3,
  update: 2,
  queueTen: 1,
  queue: 1,
  publish: 3,
  ack: 1,
};

/** How many tasks a second the parts allow, one after the other on this machine, by what their clients are. */
type Bounds = Readonly<Record<Way, number>>;

/**
 * What each part can do alone, asked as either floor asks it: on one machine a client takes the processors from the
 * part, so that a floor is held against what its own kind of client can get. Whether a floor is slow by itself shows so.
 */
async function capacities(out: Recording, crew: Crew, share: number): Promise<Bounds> {
  const perSecond = {
    sdk: await callsPerSecond(crew, "sdk", share),
    bare: await callsPerSecond(crew, "bare", share),
  };
  const rows = CALLS.map(({ part, what }) => {
    const of = (way: Way) => perSecond[way].get(part) ?? Number.NaN;
    for (const way of WAYS) out.figure(`capacity ${part} ${way}`, of(way));
    return [what, NEEDS[part], ...WAYS.flatMap((way) => [of(way), of(way) / NEEDS[part]])];
  });
  const tasks = (way: Way) => CALLS.map(({ part }) => (perSecond[way].get(part) ?? Number.NaN) / NEEDS[part]);
  const bound = (way: Way) => 1 / tasks(way).reduce((sum, each) => sum + 1 / each, 0);
  const noop = await invocationsPerSecond(scaled(3_000, share));
  rows.push(["The local host: invocations of nothing (not in the floor)", 2, noop, noop / 2, "", ""]);
  rows.push([
    "All but the last, each having the machine for its part of the time",
    "",
    ...WAYS.flatMap((way) => ["", bound(way)]),
  ]);
  rows.push(["The narrowest alone", "", ...WAYS.flatMap((way) => ["", Math.min(...tasks(way))])]);
  out.table(
    [
      "A PART'S CAPACITY",
      "A TASK NEEDS",
      "BY THE SDK, A SECOND",
      "TASKS A SECOND",
      "BY BARE REQUESTS, A SECOND",
      "TASKS A SECOND",
    ],
    rows,
  );
  out.figure("capacity invocations", noop);
  for (const way of WAYS) out.figure(`bound ${way}`, bound(way));
  return { sdk: bound("sdk"), bare: bound("bare") };
}

const WAYS = ["sdk", "bare"] as const;

async function callsPerSecond(crew: Crew, way: Way, share: number): Promise<ReadonlyMap<PartCall, number>> {
  const perSecond = new Map<PartCall, number>();
  crew.use(way);
  for (const { part, what, count, messages } of CALLS) {
    say(`measuring ${what}, ${NAMES[way].replace("the floor, ", "")} …`);
    perSecond.set(part, (await crew.measure(part, scaled(count, share), LANES)) * messages);
  }
  return perSecond;
}

interface Comparison {
  readonly load: Load;
  readonly crew: Crew;
  readonly traffic: QueueTraffic;
  readonly inFlight: number;
  readonly tasks: number;
  readonly rounds: number;
  readonly bounds: Bounds;
}

async function compare(out: Recording, options: Comparison): Promise<void> {
  const { inFlight, tasks, rounds, bounds } = options;
  const all: Record<Doer, Round[]> = { product: [], sdk: [], bare: [] };
  for (let round = 1; round <= rounds; round++) {
    say(`${tasks} tasks, ${inFlight} under way, round ${round} of ${rounds} …`);
    for (const doer of DOERS) all[doer].push(await once(options, doer));
  }
  const ratio = (doer: Doer, of: (round: Round) => number) =>
    median(all.product.map((round, at) => of(round) / of(all[doer][at] ?? round)));
  const requests = (doer: Doer, operation: string) =>
    median(all[doer].map((round) => (round.requests[operation] ?? 0) / tasks));
  out.table(
    [
      `${inFlight} UNDER WAY`,
      "TASKS A SECOND",
      "PRODUCT / THIS",
      "OF ITS CLIENT'S BOUND",
      "OF THE PARTS' BOUND",
      "MS, MEDIAN",
      "PRODUCT / THIS",
      "CPU, MS A TASK",
      "PRODUCT / THIS",
      "SQS SENDS",
      "RECEIVES",
      "REMOVALS",
    ],
    DOERS.map((doer) => {
      const perSecond = median(all[doer].map((round) => round.perSecond));
      return [
        NAMES[doer],
        perSecond,
        ratio(doer, (round) => round.perSecond),
        perSecond / bounds[doer === "bare" ? "bare" : "sdk"],
        perSecond / bounds.bare,
        median(all[doer].map(({ ms }) => ms)),
        ratio(doer, ({ ms }) => ms),
        median(all[doer].map(cpuMs)),
        ratio(doer, cpuMs),
        ...["SendMessageBatch", "ReceiveMessage", "DeleteMessageBatch"].map((name) => requests(doer, name)),
      ];
    }),
  );
  const names = Array.from(all.product[0]?.cpu.keys() ?? []);
  out.table(
    [`${inFlight} UNDER WAY, CPU, MS A TASK`, ...names.map((name) => name.toUpperCase())],
    DOERS.map((doer) => [
      NAMES[doer],
      ...names.map((name) => median(all[doer].map(({ cpu }) => cpu.get(name) ?? 0))),
    ]),
  );
  for (const doer of WAYS) {
    out.figure(
      `throughput ${inFlight} product/${doer}`,
      ratio(doer, (round) => round.perSecond),
    );
    out.figure(
      `latency ${inFlight} product/${doer}`,
      ratio(doer, ({ ms }) => ms),
    );
    out.figure(`cpu ${inFlight} product/${doer}`, ratio(doer, cpuMs));
    out.figure(
      `throughput ${inFlight} ${doer}/bound`,
      median(all[doer].map(({ perSecond }) => perSecond)) / bounds.bare,
    );
  }
}

async function once({ load, crew, traffic, tasks, inFlight }: Comparison, doer: Doer): Promise<Round> {
  if (doer !== "product") crew.use(doer);
  const asking = doer === "product" ? {} : { executor: EXECUTOR };
  // What still waits for the way of before is answered in it.
  await load.run(Math.min(inFlight, tasks), inFlight, asking);
  traffic.take();
  const processes = processesOf(load, doer === "product" ? undefined : crew);
  const before = processes.map(([, pids]) => cpuOf(pids));
  const began = performance.now();
  const seen: Seen[] = await load.run(tasks, inFlight, asking);
  const seconds = (performance.now() - began) / 1_000;
  return {
    perSecond: tasks / seconds,
    ms: median(seen.map(({ result }) => result)),
    cpu: new Map(processes.map(([name, pids], at) => [name, (cpuOf(pids) - (before[at] ?? 0)) / tasks])),
    requests: traffic.take(),
  };
}

type Processes = readonly (readonly [name: string, pids: readonly number[]])[];

/** The processes that do a task's work, by what they are for: the crew's or else the product's. */
function processesOf({ sluice }: Load, crew: Crew | undefined): Processes {
  const { host } = sluice;
  const functions = ROLES.map((role) => {
    const ofProduct = host.functions().filter(({ name }) => name.endsWith(role));
    return [role, crew?.pids(role) ?? ofProduct.flatMap(({ pids }) => pids)] as const;
  });
  const dynamodb = host.servers().flatMap(({ pid }) => pid ?? []);
  return [
    ["host, SQS, sender", [process.pid]],
    ...functions,
    ["DynamoDB", dynamodb],
    ["NATS", natsServers()],
  ];
}

function cpuMs({ cpu }: Round): number {
  return Array.from(cpu.values()).reduce((sum, ms) => sum + ms, 0);
}
