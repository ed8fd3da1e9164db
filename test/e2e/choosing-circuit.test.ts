import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ROOT } from "../../infra/bundle.ts";
import { synthesize } from "../../infra/synth.ts";
import { pollingServer, type RemoteServer, sendJson } from "../remotes/servers/index.ts";
import { SENDER } from "../support/sluice.ts";
import { type Stage, startStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

/** The circuit of an agent over HTTP, as whoever hands something on sees it (docs/choosing.md, circuits). */

const BOSS = "acme-boss";
/** A circuit is open for six seconds. */
const TIME_SCALE = 10;

let stage: Stage;
let remote: RemoteServer;
let folder: string;

before(async () => {
  remote = await pollingServer();
  const { url, origin } = remote;
  folder = mkdtempSync(join(tmpdir(), "sluice-circuit-"));
  const agentsDir = join(folder, "agents");
  mkdirSync(agentsDir);
  const boss = join(ROOT, "test/fixtures/deployment/agents/boss.ts");
  writeFileSync(join(agentsDir, "boss.ts"), `export { default } from ${JSON.stringify(boss)};\n`);
  const agentsYaml = join(folder, "agents.yaml");
  writeFileSync(
    agentsYaml,
    `deployment: acme
defaults: { acceptFromRuntimes: [${SENDER}, ${BOSS}], statusEverySec: 0 }
agents:
  boss: { delegateTargets: [{ runtimeAgentId: acme-audit, skillId: "*" }] }
  audit: { remote: auditor }
remotes:
  - { name: auditor, url: "${url}", skills: [script] }
outbound: { allow: ["${origin}"] }
`,
  );
  const { assemblyDir } = await synthesize({ agentsDir, agentsYaml, outDir: join(folder, "cdk.out") });
  stage = await startStage({ assemblyDir, timeScale: TIME_SCALE });
});
after(async () => {
  await stage.stop();
  await remote.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Has `boss` hand on what the remote agent is to do. */
async function begin(of: { to?: string } = {}): Promise<string> {
  const a2a = { parts: [{ data: { skill: "script", message: "complete it is done", ...of } }] };
  const delivery = { timeoutSec: 60, maxDelegationDepth: 1 };
  return (await stage.sluice.peer.ask(BOSS, { a2a, channelRef: "boss", delivery })).taskId;
}

/** The same, and tells how it has ended. */
async function ask(of: { to?: string } = {}): Promise<string> {
  const taskId = await begin(of);
  await until("it has ended", () => stage.log.ended(taskId));
  const last = stage.log.of(taskId).at(-1)?.event;
  return last?.error ? `${last.error.code}: ${last.error.message}` : (last?.content ?? "");
}

const opened = () => stage.sluice.lines.filter((line) => line.includes("an agent that fails is left alone"));

test("an agent that fails five times is left alone, then one call goes through, and its success lets in everybody", async () => {
  // Its card is there, so that it is well for whoever looks after it.
  remote.intercept(({ method }, response) => {
    if (method === "POST") sendJson(response, {}, 500);
    return method === "POST";
  });
  for (let n = 0; n < 5; n++) await begin();
  await until("its circuit opens", () => opened().length > 0, {
    seen: () => stage.sluice.lines.filter((line) => /audit|auditor|WARN|ERROR/.test(line)).slice(-40),
  });
  assert.match(await ask(), /^unknown_agent: .*no_candidate: .*"acme-audit" is circuit_open/);
  assert.match(await ask({ to: "audit" }), /^overloaded: .*circuit_open: "acme-audit"/);
  remote.intercept(undefined);
  await until("it is chosen again", async () => /it is done/.test(await ask()));
  const ends = await Promise.all(Array.from({ length: 3 }, () => ask()));
  for (const end of ends) assert.match(end, /it is done/);
});
