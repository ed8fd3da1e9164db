import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { ROOT } from "../../infra/bundle.ts";
import { synthesize } from "../../infra/synth.ts";
import { ensureStreams } from "../../shared/nats/index.ts";
import { startNats } from "../support/nats-server.ts";
import { Peer, type Received } from "../support/peer.ts";
import type { Point, Verdict } from "../support/proxy/points.ts";
import { killCaller } from "../support/proxy/proxies.ts";
import { SENDER } from "../support/sluice.ts";
import { assertWhole, type Stage, startStage } from "../support/stage.ts";
import { inTime, until } from "../support/until.ts";

const DIGEST = "acme-digest";
const SCALE = 60;
const TEXT = "Twelve green bottles, hanging on the wall.\n".repeat(20_000);
const STEPS = ["measure", "words", "structure", "summary", "report"];

const folder = mkdtempSync(join(tmpdir(), "sluice-digest-"));
let assemblyDir: string;
let stage: Stage;
before(async () => {
  const agentsYaml = join(folder, "agents.yaml");
  writeFileSync(
    agentsYaml,
    `deployment: acme\ndefaults: { acceptFromRuntimes: [${SENDER}] }\nagents: { digest: {} }\n`,
  );
  ({ assemblyDir } = await synthesize({
    agentsDir: join(ROOT, "agents"),
    agentsYaml,
    outDir: join(folder, "assembly"),
  }));
  stage = await startStage({ assemblyDir, timeScale: SCALE });
});
after(async () => {
  await stage.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The steps that a write to the journal brings. */
function stepsOf({ kind, body }: Point): string[] {
  if (!kind.includes("PutItem entry")) return [];
  return [...String(body).matchAll(/"name":\{"S":"([^"]+)"\}/g)].flatMap(([, name]) => name ?? []);
}

const ask = (peer: Peer) => peer.ask(DIGEST, { a2a: TEXT, channelRef: "digest" });

function assertDone(events: readonly Received[]): void {
  assertWhole(events);
  assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
  assert.match(events.at(-1)?.event.content ?? "", /140000 words/);
}

/** Runs `digest`, and does something right after its second step is stored. */
async function disturbed(act: (point: Point) => Verdict | Promise<Verdict>): Promise<void> {
  const { sluice, proxies, store } = stage;
  const put: string[][] = [];
  let begun = false;
  const acted = Promise.withResolvers<void>();
  const off = proxies.points.on({
    after: async (point) => {
      const steps = stepsOf(point);
      if (steps.length > 0) put.push(steps);
      if (begun || !steps.includes("words")) return "pass";
      begun = true;
      const verdict = await act(point);
      acted.resolve();
      return verdict;
    },
  });
  const { taskId } = await ask(sluice.peer);
  await inTime("a write with the second step", acted.promise);
  assertDone(await sluice.peer.outcome(taskId));
  off();
  assert.deepEqual(put.flat().toSorted(), STEPS.toSorted(), "each step is put once, by whichever worker");
  const stored = (await store.entries(taskId, 1)).flatMap(({ steps = [] }) => steps.map(({ name }) => name));
  assert.deepEqual(stored.toSorted(), STEPS.toSorted());
}

test("digest goes on after kill -9 of its worker, and runs no stored step again", () =>
  disturbed(killCaller));

test("digest goes on after kill -9 of nats-server in its middle", () =>
  disturbed(async (): Promise<Verdict> => {
    const { nats, peer } = stage.sluice;
    await nats.restart();
    await until("the peer is connected again", () =>
      jetstreamManager(peer.nc, { timeout: 500 }).then(
        () => true,
        () => false,
      ),
    );
    return "pass";
  }));

test("digest goes on after kill -9 of the host, and a new one on its data", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-digest-host-"));
  const nats = await startNats();
  const peer = await Peer.connect(nats.url, SENDER);
  await ensureStreams(await jetstreamManager(peer.nc));
  let host = await startHostProcess(dataDir, nats.url);
  t.after(async () => {
    host.kill("SIGTERM");
    await once(host, "exit");
    await peer.close();
    await nats.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const { taskId } = await ask(peer);
  await until("the work has begun", async () => (await peer.events(taskId)).length > 0);
  host.kill("SIGKILL");
  await once(host, "exit");
  host = await startHostProcess(dataDir, nats.url);
  assertDone(await peer.outcome(taskId));
});

async function startHostProcess(dataDir: string, natsUrl: string): Promise<ChildProcess> {
  const main = join(import.meta.dirname, "../support/host-main.ts");
  const host = spawn(process.execPath, [main, dataDir, assemblyDir, natsUrl, String(SCALE)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await inTime("the host is ready", once(host.stdout, "data"));
  return host;
}
