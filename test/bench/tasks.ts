import { Meter, ofPart, usageOf } from "../support/meter.ts";
import { Load, type Seen } from "./load.ts";
import { percentile, say, short } from "./print.ts";
import { Recording } from "./recording.ts";

const WARM_UP = 20;

export interface TasksOptions {
  readonly tasks: number;
  readonly inFlight: number;
}

/** What a task of one step costs and how long it takes, over the whole product on this machine. */
export async function benchTasks(options: TasksOptions): Promise<void> {
  const out = new Recording("tasks");
  await costs(out, "counted", "WITHOUT LIMIT", options);
  await costs(out, "counted-limited", "WITH maxConcurrent", options);
  await speeds(out, options);
  out.save();
}

async function costs(out: Recording, agent: string, which: string, { tasks }: TasksOptions): Promise<void> {
  const meter = new Meter();
  const load = await Load.start(agent, { route: meter.route });
  try {
    await load.run(WARM_UP, 1);
    meter.reset();
    say(`counting the requests of ${tasks} tasks, one after the other …`);
    await load.run(tasks, 1);
    const { passed } = meter;
    const row = (name: string, of: typeof passed) => {
      const { requests, writes, reads } = usageOf(of);
      return [name, ...[requests, writes, reads].map((sum) => (sum === 0 ? "" : sum / tasks))];
    };
    const kinds = [...new Set(passed.map(({ kind }) => kind))].sort();
    out.table(
      [`PER TASK ${which}, OF THE FUNCTIONS`, "REQUESTS", "WRITE UNITS", "READ UNITS"],
      [
        ...kinds.map((kind) =>
          row(
            kind,
            passed.filter((one) => one.kind === kind),
          ),
        ),
        ...(["dynamodb", "sqs", "s3", "nats"] as const).map((part) =>
          row(`all of ${part}`, ofPart(passed, part)),
        ),
      ],
    );
  } finally {
    await load.sluice.stop();
    meter.stop();
  }
}

async function speeds(out: Recording, { tasks, inFlight }: TasksOptions): Promise<void> {
  const load = await Load.start("counted");
  try {
    await load.run(WARM_UP, 1);
    say(`timing ${tasks} tasks, one after the other …`);
    out.table(
      [`${tasks} TASKS AT IDLE, MS`, "P50", "P95", "P99", "MAX"],
      latencies(await load.run(tasks, 1)),
    );

    say(`warming up with ${inFlight} tasks under way …`);
    await load.run(inFlight * 4, inFlight);
    const count = Math.max(tasks, inFlight) * 5;
    say(`timing ${count} tasks, ${inFlight} under way …`);
    const startedAt = performance.now();
    const seen = await load.run(count, inFlight);
    const perSecond = count / ((performance.now() - startedAt) / 1_000);
    const title = `${count} TASKS, ${inFlight} UNDER WAY, MS`;
    out.table([title, "P50", "P95", "P99", "MAX"], latencies(seen));
    const processes = load.sluice.host.functions().map(({ name, pids }) => `${name} ${pids.length}`);
    out.note(`${short(perSecond)} tasks a second, by processes: ${processes.join(", ")}`);
  } finally {
    await load.sluice.stop();
  }
}

function latencies(seen: readonly Seen[]): (string | number)[][] {
  const spans: [string, (one: Seen) => number][] = [
    ["published → accepted", ({ accepted }) => accepted],
    ["accepted → result", ({ accepted, result }) => result - accepted],
    ["published → result", ({ result }) => result],
  ];
  return spans.map(([name, of]) => {
    const values = seen.map(of);
    return [name, ...[0.5, 0.95, 0.99, 1].map((share) => percentile(values, share))];
  });
}
