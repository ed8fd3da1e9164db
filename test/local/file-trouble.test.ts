import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { FileTrouble } from "../../infra/local/file-trouble.ts";
import { HostFile } from "../../infra/local/host-file.ts";
import { LogFile } from "../../infra/local/log-file.ts";
import { temporaryFolder } from "./support/assembly.ts";
import { eventually, startTestHost } from "./support/host.ts";

/** A device that is always full (full(4)). */
const FULL = "/dev/full";

test("a full disk is told once, whoever writes and however often", async (t) => {
  const folder = temporaryFolder("full");
  const troubles: string[] = [];
  const files = new FileTrouble(folder, (message) => void troubles.push(message));
  symlinkSync(FULL, join(folder, "host.json.next"));
  symlinkSync(FULL, join(folder, "work.log"));
  const hostFile = new HostFile(join(folder, "host.json"), files);
  t.after(() => hostFile.remove());
  const log = new LogFile(join(folder, "work.log"));
  t.after(() => log.close());
  hostFile.write(() => ({ pid: 1 }));
  for (let line = 0; line < 3; line++) files.attempt(() => log.write("a line"));
  assert.equal(troubles.length, 1);
  assert.match(troubles[0] ?? "", /^the data folder cannot be written: ENOSPC/);
  assert.equal(existsSync(join(folder, "host.json")), false);

  // Once there is room again the file is written, though nothing has changed.
  rmSync(join(folder, "host.json.next"));
  await eventually(() => existsSync(join(folder, "host.json")));
});

test("a log file whose folder was removed when it would have been put aside can still be closed", () => {
  const folder = join(temporaryFolder("rotate"), "logs");
  const log = new LogFile(join(folder, "work.log"), 10);
  log.write("a line");
  rmSync(folder, { recursive: true });
  for (let line = 0; line < 2; line++) assert.throws(() => log.write("another line"), /ENOENT/);
  log.close();
});

test("a data folder that is removed is noticed and told once, and the host goes on", async (t) => {
  const source = "export const handler = async () => { console.log('called'); return 'here'; };";
  const host = await startTestHost(t, { functions: { plain: { source } } });
  const troubles = () => host.events.flatMap((event) => (event.type === "trouble" ? [event.message] : []));
  rmSync(host.dataDir, { recursive: true });
  await eventually(() => troubles().length > 0);
  for (let call = 0; call < 3; call++) assert.equal((await host.invoke("plain", {})).ok, true);
  assert.deepEqual(troubles(), [
    `the data folder ${host.dataDir} was removed: what happens now will be lost; stop, and start again`,
  ]);
});

test("a host file that is removed is written again", async (t) => {
  const host = await startTestHost(t, {});
  const path = join(host.dataDir, "host.json");
  rmSync(path);
  await eventually(() => existsSync(path));
  assert.equal(JSON.parse(readFileSync(path, "utf8")).pid, process.pid);
});
