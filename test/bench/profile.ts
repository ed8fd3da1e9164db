import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuOf, natsServers } from "./cpu.ts";
import { Load } from "./load.ts";
import { say, short } from "./print.ts";
import { byFamily, type Where, whereIn } from "./profile/where.ts";
import { Recording } from "./recording.ts";

const AGENT = "counted";
const IN_FLIGHT = 64;
const TASKS = 1_500;
const PROBE = resolve(import.meta.dirname, "profile/probe-main.ts");
const FOLDER = resolve(import.meta.dirname, "../../.cache/bench/profiles");
/** How many packages are shown of these roles. */
const MOST = 15;
const SHOWN = new Set(["host", "work"]);
const WRITTEN_MS = 2_000;

export interface ProfileOptions {
  readonly share: number;
}

/** Where the processors' time goes that a task of one step takes, process by process and in each by package. */
export async function benchProfile({ share }: ProfileOptions): Promise<void> {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  const env = { NODE_OPTIONS: `--import ${PROBE}`, PROFILE_DIR: FOLDER };
  const load = await Load.start(AGENT, { env });
  try {
    const out = new Recording("profile", load.sluice.peer.nc.info?.version);
    const tasks = Math.max(IN_FLIGHT, Math.round(TASKS * share));
    say("warming up …");
    await load.run(Math.round(tasks / 2), IN_FLIGHT);
    const roles = rolesOf(load);
    say(`profiling ${tasks} tasks, ${IN_FLIGHT} under way …`);
    const session = new Session();
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    toAll(roles);
    const before = roles.map(({ pids }) => cpuOf(pids));
    await load.run(tasks, IN_FLIGHT);
    const spent = roles.map(({ pids }, at) => cpuOf(pids) - (before[at] ?? 0));
    const { profile } = await session.post("Profiler.stop");
    toAll(roles);
    await sleep(WRITTEN_MS);
    const all = spent.reduce((sum, ms) => sum + ms, 0);
    out.table(
      [`A TASK, ${IN_FLIGHT} UNDER WAY`, "PROCESSES", "CPU, MS", "% OF ALL"],
      [
        ...roles.map(({ name, pids }, at) => {
          const ms = spent[at] ?? 0;
          return [name, pids.length, ms / tasks, (100 * ms) / all];
        }),
        ["all", "", all / tasks, 100],
      ],
    );
    const places: readonly (readonly [name: string, where: Where])[] = [
      ["host", whereIn(JSON.stringify(profile))],
      ...roles
        .filter(({ isFunction }) => isFunction)
        .map(({ name, pids }) => [name, merged(pids.map(written))] as const),
    ];
    showFamilies(out, places);
    for (const [name, where] of places) if (SHOWN.has(name)) showPackages(out, name, where);
    out.note(
      "CPU: the processes' own, by /proc. Shares: samples of V8's profiler by the package, or our folder, whose code " +
        "ran. While others use the processors as well, what waits for them counts where it waited. The host's process also " +
        "runs SQS's stand-in (fauxqs) and the tasks' sender.",
    );
    out.figure("cpu ms a task", all / tasks);
    out.save();
  } finally {
    await load.sluice.stop();
  }
}

const HOST = "THE HOST, SQS AND THE SENDER";

interface RoleOf {
  readonly name: string;
  readonly pids: readonly number[];
  readonly isFunction: boolean;
}

function rolesOf({ sluice }: Load): RoleOf[] {
  const { host } = sluice;
  return [
    { name: HOST.toLowerCase(), pids: [process.pid], isFunction: false },
    ...host
      .functions()
      .filter(({ pids }) => pids.length > 0)
      .map(({ name, pids }) => ({ name: name.replace(/^.*-/, ""), pids, isFunction: true })),
    ...host
      .servers()
      .map(({ name, pid }) => ({ name, pids: pid === undefined ? [] : [pid], isFunction: false })),
    { name: "nats", pids: natsServers(), isFunction: false },
  ];
}

function toAll(roles: readonly RoleOf[]): void {
  for (const { pids, isFunction } of roles)
    if (isFunction) for (const pid of pids) process.kill(pid, "SIGUSR2");
}

function written(pid: number): Where {
  const file = join(FOLDER, `${pid}.cpuprofile`);
  return existsSync(file) ? whereIn(readFileSync(file, "utf8")) : new Map();
}

function merged(all: readonly Where[]): Where {
  const sum = new Map<string, number>();
  for (const where of all) for (const [kind, ms] of where) sum.set(kind, (sum.get(kind) ?? 0) + ms);
  return sum;
}

function showFamilies(out: Recording, places: readonly (readonly [name: string, where: Where])[]): void {
  const shares = places.map(([, where]) => sharesOf(byFamily(where)));
  const families = [...new Set(shares.flatMap((share) => [...share.keys()]))];
  const first = (family: string) => shares.at(-1)?.get(family) ?? 0;
  out.table(
    ["% OF A ROLE'S TIME", ...places.map(([name]) => name.toUpperCase())],
    families
      .sort((a, b) => first(b) - first(a))
      .map((family) => [family, ...shares.map((share) => short(share.get(family) ?? 0))]),
  );
}

function showPackages(out: Recording, name: string, where: Where): void {
  const shares = Array.from(sharesOf(where)).sort(([, a], [, b]) => b - a);
  out.table(
    [`${name.toUpperCase()}: THE FIRST ${MOST}`, "%"],
    shares.slice(0, MOST).map(([kind, share]) => [kind, short(share)]),
  );
}

function sharesOf(where: Where): Where {
  const all = Array.from(where.values()).reduce((sum, ms) => sum + ms, 0);
  return new Map(Array.from(where, ([kind, ms]) => [kind, (100 * ms) / all]));
}
