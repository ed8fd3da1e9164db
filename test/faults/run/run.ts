import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { ROOT } from "../../../infra/bundle.ts";
import { synthesize } from "../../../infra/synth.ts";
import { ensureStreams } from "../../../shared/nats/index.ts";
import { startNats } from "../../support/nats-server.ts";
import { Peer } from "../../support/peer.ts";
import { Proxies } from "../../support/proxy/proxies.ts";
import { Adversary } from "./adversary.ts";
import { Chance } from "./chance.ts";
import { check } from "./checks/index.ts";
import { clocksOf } from "./clocks.ts";
import { collect } from "./collect.ts";
import { EventReader } from "./event-reader.ts";
import { HostProcess } from "./host.ts";
import { RealParts } from "./parts.ts";
import { PeerBook } from "./peer-book.ts";
import { Persons } from "./persons.ts";
import { type Action, drawPlan } from "./plan.ts";
import type { Outcome } from "./report.ts";
import { type Left, Rest, settle } from "./settle.ts";
import { Toll } from "./toll.ts";
import { Watch } from "./watch.ts";
import { Workload } from "./workload.ts";

/** The deployment of `test/fixtures/faults/agents.yaml`, and the sender that it accepts. */
const DEPLOYMENT = "storm";
const LIMITS = { "storm-narrow": 2 };
const SENDER = "adam-lobby-1a2b3c4d";
/** It ends with this process, and takes a file that may not grow for a full disk. */
const NATS_COMMAND = ["setpriv", "--pdeathsig", "KILL", "env", "--ignore-signal=XFSZ"];
const FIXTURE = join(ROOT, "test/fixtures/faults");

export interface FaultRunOptions {
  readonly seed: number;
  /** How long tasks are published and faults are made, in milliseconds. */
  readonly lengthMs: number;
  /** How long everything may take to come to rest afterwards, in milliseconds. */
  readonly settleMs: number;
  /** Tasks a second. */
  readonly rate: number;
  readonly timeScale: number;
  /** Instead of the one that the seed gives. */
  readonly plan?: readonly Action[];
  readonly say: (line: string) => void;
}

/** One fault run: the real stack, a peer with its ledger, an adversary; then peace, and the ledger's check. */
export async function faultRun(options: FaultRunOptions): Promise<Outcome> {
  const { seed, lengthMs, settleMs, rate, timeScale, say } = options;
  const chance = new Chance(`seed ${seed}`);
  const plan = options.plan ?? drawPlan(chance.fork("plan"), lengthMs);
  const { assemblyDir } = await synthesize({
    agentsDir: join(FIXTURE, "agents"),
    agentsYaml: join(FIXTURE, "agents.yaml"),
    outDir: join(ROOT, ".cache/faults-assembly"),
  });
  await using closing = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), `sluice-faults-${seed}-`));
  const dataDir = join(folder, "data");
  const steps = join(folder, "steps");
  for (const each of [dataDir, steps]) mkdirSync(each);
  const fileOf = (messageId: string) => join(steps, `${messageId}.jsonl`);

  const nats = await startNats([], NATS_COMMAND);
  closing.defer(() => nats.stop());
  const peer = await Peer.connect(nats.url, SENDER);
  closing.defer(() => peer.close());
  await ensureStreams(await jetstreamManager(peer.nc));

  const toll = new Toll();
  const watch = new Watch();
  const proxies = new Proxies(() => host.functions());
  closing.defer(() => proxies.stop());
  proxies.points.on(watch.hooks);
  const host = new HostProcess({
    start: { dataDir, assemblyDir, natsUrl: nats.url, timeScale, env: {} },
    route: proxies.route,
    onTrouble: (message) => toll.tell(message),
  });
  closing.defer(() => host.kill());
  let starts = 0;
  const startHost = async () => {
    await host.start(clocksOf(chance.fork(`clocks ${++starts}`), timeScale));
  };
  await startHost();

  const book = new PeerBook(peer, DEPLOYMENT);
  const persons = new Persons(book, chance.fork("persons"));
  const reader = new EventReader(peer.nc, (event) => void persons.take(event).catch(() => {}));
  reader.start();
  const workload = new Workload({ book, reader, chance: chance.fork("tasks"), fileOf });
  const adversary = new Adversary({
    host,
    nats,
    proxies,
    toll,
    chance: chance.fork("adversary"),
    startHost,
    repeat: (count) => workload.repeat(count),
    giveBack: (ackSubject) => {
      if (!peer.nc.isClosed()) peer.nc.publish(ackSubject, "-NAK");
    },
  });

  const begun = Date.now();
  const ended = () => reader.events.filter(({ subject }) => /\.(result|rejected)$/.test(subject)).length;
  const progress = setInterval(() => {
    const seconds = Math.round((Date.now() - begun) / 1_000);
    say(`${seconds} s: ${book.given.size} tasks published, ${ended()} ended, ${toll.kills} kills`);
  }, 10_000);
  closing.defer(() => clearInterval(progress));
  await Promise.all([adversary.play(plan), workload.play({ perSecond: rate, forMs: lengthMs })]);

  say("the faults are over; waiting for everything to come to rest …");
  const rest = new Rest(peer.nc, [...book.given.values()]);
  const come = async (queuesOf: (name: string) => boolean): Promise<Left> => {
    using parts = new RealParts(host.ready ?? noHost());
    return await settle(() => rest.look(parts, queuesOf), { withinMs: settleMs, say });
  };
  // Hints that killed workers had received stay hidden for longer than anybody should wait; a new host gives them back
  // (docs/local-host.md). Nothing else may need it.
  const before = await come((name) => name !== "work");
  say("starting a last host, under right clocks …");
  await host.stop();
  await host.start();
  const left = await come(() => true);
  await reader.stop();
  clearInterval(progress);

  using parts = new RealParts(host.ready ?? noHost());
  const given = [...book.given.values()];
  const ledger = await collect({
    given,
    parts,
    nc: peer.nc,
    watch,
    toll,
    timeScale,
    dataDir,
    fileOf,
    seen: reader.events,
    stuck: before.open,
    limits: LIMITS,
  });
  const { violations, late } = check(ledger);
  await host.stop();
  const clean = violations.length === 0;
  if (clean) closing.defer(() => rmSync(folder, { recursive: true, force: true }));
  return {
    seed,
    lengthMs,
    rate,
    timeScale,
    plan,
    tookMs: Date.now() - begun,
    toll: Object.fromEntries(toll.counts),
    kills: toll.kills,
    troubled: adversary.failures,
    told: toll.told,
    left,
    late,
    violations,
    ledger,
    folder: clean ? undefined : folder,
  };
}

function noHost(): never {
  throw new Error("the host is not ready");
}
