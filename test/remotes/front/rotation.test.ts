import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parseDeployment } from "../../../shared/config/deployment.ts";
import { Reach } from "../../../shared/remotes/front/reach.ts";
import { release } from "../../../shared/remotes/front/release.ts";
import { emptyView, foldEntry, type View } from "../../../shared/tasks/fold.ts";
import { memoryValues } from "../../../shared/testing/memory-values.ts";
import { startTable } from "../../support/table.ts";
import { message, never, TRACE } from "../exchange/support.ts";
import { type RemoteServer, streamingServer } from "../servers/index.ts";

/** A credential that is rotated while a task is at the remote: it is asked, and told the end, with the new one. */

const folder = mkdtempSync(join(tmpdir(), "sluice-rotation-"));
const file = join(folder, "token");
let taken = "one";
let table: Awaited<ReturnType<typeof startTable>>;
let server: RemoteServer;
before(async () => {
  const authorize = ({ headers }: { headers: Readonly<Record<string, string>> }) =>
    headers.authorization === `Bearer ${taken}`;
  [table, server] = await Promise.all([startTable(), streamingServer({ authorize })]);
});
after(async () => {
  rmSync(folder, { recursive: true });
  await Promise.all([server?.close(), table?.stop()]);
});

test("a task is asked for, and its end told, whichever side has the new credential first", async () => {
  writeFileSync(file, "one");
  const deployment = parseDeployment({
    deployment: "acme",
    agents: [],
    remotes: [{ name: "a", url: server.url, auth: { scheme: "bearer", credentials: `file:${file}` } }],
    outbound: { allow: [server.origin] },
  });
  const telemetry = { info() {}, warn() {}, count() {} };
  const reach = new Reach({
    ...{ deployment, telemetry, access: table.access, now: Date.now },
    timing: { scale: 1 },
  });
  const front = reach.front("a", TRACE);
  const call = message("never", { stream: false });
  const { taskId } = await front.ask(async (exchange) => {
    const { seen } = await exchange.start(call, never);
    // Within one exchange.
    taken = "two";
    writeFileSync(file, "two");
    return await exchange.get(seen.taskId ?? assert.fail("there is no task"), never);
  });
  assert.ok(taskId !== undefined);

  // The agent has it first: it refuses us until we are given it.
  taken = "three";
  const tell = () =>
    release({ values: memoryValues(), front }, { view: journal(call, taskId), endedAt: Date.now() });
  assert.equal(await tell(), "later");
  // Emptied by whoever writes it anew.
  writeFileSync(file, "");
  assert.equal(await tell(), "later");
  assert.deepEqual(server.canceled, []);
  writeFileSync(file, "three");
  assert.equal(await tell(), "told");
  assert.deepEqual(server.canceled, [taskId]);
});

/** That of a task that is at work at the remote. */
function journal(call: object, taskId: string): View {
  const view = emptyView();
  const steps = Object.entries({ call, send: { taskId, state: "TASK_STATE_WORKING" } }).map(
    ([name, value]) => ({
      ...{ name: `remote/${name}`, kind: "run" as const, ms: 0 },
      value: { text: JSON.stringify(value) },
    }),
  );
  foldEntry(view, { place: 1, nonce: "", epoch: 1, at: 0, revision: 1, steps });
  return view;
}
