import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ROOT } from "../../infra/bundle.ts";
import { synthesize } from "../../infra/synth.ts";
import { kill9, wholeLines } from "../support/kill-9.ts";
import type { Point } from "../support/proxy/points.ts";
import { killCaller } from "../support/proxy/proxies.ts";
import { SENDER } from "../support/sluice.ts";
import { assertWhole, type Stage, startStage } from "../support/stage.ts";
import { until } from "../support/until.ts";

/** The agents that other files do not kill: `digest`, `research`, `deploy-gate` and `llm` have tests of their own. */

const folder = mkdtempSync(join(tmpdir(), "sluice-shipped-"));
const log = join(folder, "log");
let stage: Stage;

before(async () => {
  const agentsYaml = join(folder, "agents.yaml");
  const agents = {
    echo: {},
    digest: { acceptFromRuntimes: ["acme-relay"] },
    exec: { commands: { slow: ["sh", "-c", `echo $PPID >> ${log}; sleep 1; echo done`] } },
    relay: { delegateTargets: [{ runtimeAgentId: "acme-digest" }] },
  };
  const defaults = { acceptFromRuntimes: [SENDER] };
  writeFileSync(agentsYaml, JSON.stringify({ deployment: "acme", defaults, agents }));
  const { assemblyDir } = await synthesize({
    agentsDir: join(ROOT, "agents"),
    agentsYaml,
    outDir: join(folder, "assembly"),
  });
  stage = await startStage({ assemblyDir, timeScale: 60 });
});
after(async () => {
  await stage.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Kills whoever is about to make the first write of a kind for a task; gives how often that was. */
function killFirst(
  kind: RegExp,
  isOf: (point: Point) => boolean = () => true,
): { readonly kills: () => number } {
  let kills = 0;
  const off = stage.proxies.points.on({
    before(point) {
      if (point.caller === undefined || !kind.test(point.kind) || !isOf(point)) return undefined;
      kills++;
      off();
      return killCaller(point);
    },
  });
  return { kills: () => kills };
}

async function ask(agent: string, a2a: unknown, maxDelegationDepth = 0): Promise<string> {
  const delivery = { maxDelegationDepth };
  return (await stage.sluice.peer.ask(`acme-${agent}`, { a2a, channelRef: agent, delivery })).taskId;
}

async function completed(taskId: string): Promise<string> {
  const events = await stage.sluice.peer.outcome(taskId);
  assertWhole(events);
  const last = events.at(-1)?.event;
  assert.equal(last?.state, "TASK_STATE_COMPLETED", last?.error?.message);
  return last.content;
}

test("echo answers once although its worker is killed before it has", async () => {
  const killed = killFirst(/^dynamodb PutItem entry .*end/);
  assert.equal(await completed(await ask("echo", "hello")), "hello");
  assert.equal(killed.kills(), 1);
});

test("exec goes on after kill -9 of its worker: a command whose result is not stored runs again", async () => {
  const taskId = await ask("exec", "slow");
  const workers = () => (existsSync(log) ? wholeLines(readFileSync(log, "utf8")) : []);
  await until("the command runs", () => workers().length > 0);
  kill9(workers()[0]);
  assert.equal(await completed(taskId), "slow: exit code 0\ndone");
  assert.equal(workers().length, 2);
});

for (const [when, kind] of [
  ["before it has handed its task on", /^nats publish task/],
  ["before its end is put", /^dynamodb PutItem entry .*end/],
] as const)
  test(`relay goes on after kill -9 of its worker ${when}: the other agent gets one task`, async () => {
    const before = (await stage.sluice.peer.events(undefined, "acme-relay")).length;
    const killed = killFirst(kind, ({ caller }) => caller?.name.includes("work") === true);
    const taskId = await ask("relay", "acme-digest one two three", 1);
    assert.match(await completed(taskId), /3 words/);
    assert.equal(killed.kills(), 1);
    const heard = (await stage.sluice.peer.events(undefined, "acme-relay")).slice(before);
    assertWhole(heard);
  });
