import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { ROOT } from "../../../infra/bundle.ts";
import { synthesize } from "../../../infra/synth.ts";
import { ensureStreams } from "../../../shared/nats/index.ts";
import { startNats, type TestNats } from "../../support/nats-server.ts";
import { Peer } from "../../support/peer.ts";
import { Proxies } from "../../support/proxy/proxies.ts";
import type { Chance } from "./chance.ts";
import { clocksOf } from "./clocks.ts";
import { HostProcess } from "./host.ts";
import { RealParts } from "./parts.ts";
import { Toll } from "./toll.ts";
import { Watch } from "./watch.ts";

/** It ends with this process, and takes a file that may not grow for a full disk. */
const NATS_COMMAND = ["setpriv", "--pdeathsig", "KILL", "env", "--ignore-signal=XFSZ"];
const FIXTURE = join(ROOT, "test/fixtures/faults");
/** The deployment of the fixture, the sender that it accepts, and its agents' limits. */
export const DEPLOYMENT = "storm";
const SENDER = "adam-lobby-1a2b3c4d";
export const LIMITS = { "storm-narrow": 2 };

/** The real stack on real parts, with a proxy before each, and a peer: where a fault run takes place. */
export interface Scene extends AsyncDisposable {
  /** Everything that the run leaves is in it. It stays. */
  readonly folder: string;
  readonly dataDir: string;
  /** Where a task's steps leave their lines. */
  readonly fileOf: (messageId: string) => string;
  readonly nats: TestNats;
  readonly peer: Peer;
  readonly proxies: Proxies;
  readonly host: HostProcess;
  readonly toll: Toll;
  readonly watch: Watch;
  /** Starts a host on the data that the last one left, under clocks of its own. */
  readonly startHost: () => Promise<void>;
  /** The real parts of the host that runs now. */
  parts(): RealParts;
}

/** Sets the scene; a host runs. */
export async function setScene(seed: number, timeScale: number, chance: Chance): Promise<Scene> {
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
  const all = closing.move();
  return {
    folder,
    dataDir,
    fileOf: (messageId) => join(steps, `${messageId}.jsonl`),
    nats,
    peer,
    proxies,
    host,
    toll,
    watch,
    startHost,
    parts() {
      if (host.ready === undefined) throw new Error("no host is ready");
      return new RealParts(host.ready);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
