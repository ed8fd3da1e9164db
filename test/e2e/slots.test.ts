import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { ensureStreams } from "../../shared/nats/index.ts";
import { type Sluice, startSluice } from "../support/sluice.ts";

const NARROW = "acme-narrow";
const TASKS = 20;

const folder = mkdtempSync(join(tmpdir(), "sluice-slots-"));
let sluice: Sluice;
before(async () => {
  sluice = await startSluice();
  await ensureStreams(await jetstreamManager(sluice.peer.nc));
});
after(async () => {
  await sluice.stop();
  rmSync(folder, { recursive: true });
});

test("an agent with two slots works on twenty tasks, never on three at once", async () => {
  const file = join(folder, "log");
  const { peer } = sluice;
  const asked = await Promise.all(
    Array.from({ length: TASKS }, () =>
      peer.ask(NARROW, { channelRef: "narrow", a2a: { parts: [{ data: { file, workMs: 50 } }] } }),
    ),
  );
  for (const { taskId } of asked) {
    const events = await peer.outcome(taskId);
    assert.equal(events.at(-1)?.event.state, "TASK_STATE_COMPLETED");
  }
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  assert.equal(lines.length, 2 * TASKS);
  let working = 0;
  let most = 0;
  for (const line of lines) {
    working += line.startsWith("begin") ? 1 : -1;
    most = Math.max(most, working);
  }
  assert.equal(most, 2);
});
