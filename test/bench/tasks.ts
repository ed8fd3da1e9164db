/**
 * What a task of one step costs and how long it takes, over the whole product on this machine: `npm run bench`, or
 * `npm run bench -- --tasks 1000 --in-flight 128`. It prints tables and judges nothing.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem, type } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import * as z from "zod";
import { table } from "../../cli/table.ts";
import { findNatsServer } from "../../infra/local/nats-server.ts";
import { synthesize } from "../../infra/synth.ts";
import { SENDER } from "../support/sluice.ts";
import { Load, type Seen } from "./load.ts";
import { Meter } from "./meter.ts";

const ROOT = resolve(import.meta.dirname, "../..");

const number = z.coerce.number().int().min(1);
const { tasks, "in-flight": inFlight } = z.object({ tasks: number, "in-flight": number }).parse(
  parseArgs({
    options: {
      tasks: { type: "string", default: "200" },
      "in-flight": { type: "string", default: "64" },
    },
  }).values,
);

const say = (text: string) => process.stderr.write(`${text}\n`);
const print = (head: string[], rows: (string | number)[][]) => {
  const cells = [
    head,
    ...rows.map((row) => row.map((cell) => (typeof cell === "number" ? short(cell) : cell))),
  ];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const [first = [], ...rest] = cells.map((row) =>
    row.map((cell, column) => (column === 0 ? cell : cell.padStart(widths[column] ?? 0))),
  );
  console.log(`\n${table(first, rest).join("\n")}`);
};

function short(value: number): string {
  return value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(value < 10 ? 2 : 1);
}

/** The value below which a share of them lies (nearest rank). */
function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

function latencies(seen: readonly Seen[]): (string | number)[][] {
  const spans: [string, (one: Seen) => number][] = [
    ["published → accepted", ({ accepted }) => accepted],
    ["accepted → result", ({ accepted, result }) => result - accepted],
    ["published → result", ({ result }) => result],
  ];
  return spans.map(([name, of]) => {
    const sorted = seen.map(of).sort((a, b) => a - b);
    return [name, ...[0.5, 0.95, 0.99, 1].map((share) => percentile(sorted, share))];
  });
}

function version(name: string): string {
  const file = join(ROOT, "node_modules", name, "package.json");
  return `${name} ${z.object({ version: z.string() }).parse(JSON.parse(readFileSync(file, "utf8"))).version}`;
}

function header(): void {
  const [cpu] = cpus();
  console.log(new Date().toISOString());
  console.log(
    `${cpus().length} × ${cpu?.model ?? "unknown"}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${type()} ${release()}`,
  );
  const nats = execFileSync(process.env.NATS_SERVER_BIN ?? "", ["--version"], { encoding: "utf8" }).trim();
  const parts = [version("@dynoxide/linux-x64"), version("fauxqs")];
  console.log(`Node.js ${process.versions.node}, ${nats}, ${parts.join(", ")}`);
}

/** The stack of the tests with another limit for the agent that is asked. */
async function assembly(maxConcurrent: number): Promise<string> {
  const folder = join(ROOT, ".cache/bench-assembly");
  mkdirSync(folder, { recursive: true });
  const agentsYaml = join(folder, "agents.yaml");
  const agents = { support: { acceptFromRuntimes: [SENDER], maxConcurrent } };
  writeFileSync(agentsYaml, JSON.stringify({ deployment: "acme", agents }));
  const agentsDir = join(ROOT, "test/fixtures/deployment/agents");
  return (await synthesize({ agentsDir, agentsYaml, outDir: join(folder, "out") })).assemblyDir;
}

async function costs(maxConcurrent: number): Promise<void> {
  const meter = new Meter();
  const load = await Load.start({ route: meter.route, assemblyDir: await assembly(maxConcurrent) });
  try {
    await load.run(20, 1);
    meter.reset();
    say(`counting the requests of ${tasks} tasks, one after the other …`);
    await load.run(tasks, 1);
    const kinds = [...meter.usage].sort(([a], [b]) => a.localeCompare(b));
    const rows = kinds.map(([kind, { requests, units }]): (string | number)[] => [
      kind,
      requests / tasks,
      units === 0 ? "" : units / tasks,
    ]);
    for (const part of ["dynamodb", "sqs", "s3", "nats"]) {
      const own = kinds.filter(([kind]) => kind.startsWith(`${part} `));
      const sum = (of: (usage: { requests: number; units: number }) => number) =>
        own.reduce((all, [, usage]) => all + of(usage), 0) / tasks;
      const units = sum((usage) => usage.units);
      rows.push([`all of ${part}`, sum((usage) => usage.requests), units === 0 ? "" : units]);
    }
    print([`PER TASK, maxConcurrent ${maxConcurrent}`, "REQUESTS", "CAPACITY UNITS"], rows);
  } finally {
    await load.sluice.stop();
    meter.stop();
  }
}

async function speeds(): Promise<void> {
  const load = await Load.start();
  try {
    await load.run(20, 1);
    say(`timing ${tasks} tasks, one after the other …`);
    print([`${tasks} TASKS AT IDLE, MS`, "P50", "P95", "P99", "MAX"], latencies(await load.run(tasks, 1)));

    say(`warming up with ${inFlight} tasks under way …`);
    await load.run(inFlight * 4, inFlight);
    const count = Math.max(tasks, inFlight) * 5;
    say(`timing ${count} tasks, ${inFlight} under way …`);
    const startedAt = performance.now();
    const seen = await load.run(count, inFlight);
    const perSecond = count / ((performance.now() - startedAt) / 1_000);
    const title = `${count} TASKS, ${inFlight} UNDER WAY, MS`;
    print([title, "P50", "P95", "P99", "MAX"], latencies(seen));
    const processes = load.sluice.host.functions().map(({ name, pids }) => `${name} ${pids.length}`);
    console.log(`\n${short(perSecond)} tasks a second, by processes: ${processes.join(", ")}`);
  } finally {
    await load.sluice.stop();
  }
}

process.env.NATS_SERVER_BIN ??= await findNatsServer(say);
header();
await costs(0);
await costs(10);
await speeds();
