// Restate's server, one node with its data on disk, and its SDK; run in the folder where both are installed.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import * as restate from "@restatedev/restate-sdk";

const { steps, parallel, stored } = JSON.parse(process.argv[2]);
const result = { step: [], parallel: null, replay: null, said: [] };
const runs = { replay: 0 };

const bench = restate.service({
  name: "bench",
  handlers: {
    sequential: async (ctx) => {
      for (let n = 0; n < steps; n++) {
        const before = performance.now();
        await ctx.run(`step ${n}`, () => n);
        result.step.push(performance.now() - before);
      }
    },
    parallel: async (ctx) => {
      const before = performance.now();
      const all = Array.from({ length: parallel }, (_, n) => ctx.run(`part ${n}`, () => n));
      await restate.RestatePromise.all(all);
      result.parallel = performance.now() - before;
    },
    replay: async (ctx) => {
      const before = performance.now();
      runs.replay++;
      for (let n = 0; n < stored; n++) await ctx.run(`step ${n}`, () => n);
      if (runs.replay > 1) result.replay ??= performance.now() - before;
      await ctx.sleep(3_000);
    },
  },
});

const freePort = () =>
  new Promise((done) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

const [own, ingress, admin, node] = [await freePort(), await freePort(), await freePort(), await freePort()];
await restate.serve({ services: [bench], port: own });
const folder = mkdtempSync(join(tmpdir(), "sluice-restate-"));
const server = spawn(resolve("node_modules/.bin/restate-server"), ["--node-name", "bench"], {
  cwd: folder,
  stdio: ["ignore", "pipe", "pipe"],
  // What npm has linked is a script that starts the server: both are ended together.
  detached: true,
  env: {
    ...process.env,
    DO_NOT_TRACK: "1",
    RESTATE_DISABLE_TELEMETRY: "true",
    RESTATE_BASE_DIR: folder,
    RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
    RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${node}`,
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    // A handler that waits is left at once, and run again later.
    RESTATE_WORKER__INVOKER__INACTIVITY_TIMEOUT: "100ms",
  },
});
let log = "";
for (const stream of [server.stdout, server.stderr]) stream.on("data", (data) => (log += data));

async function insist(url, options) {
  for (let tries = 1; ; tries++) {
    try {
      const answer = await fetch(url, options);
      if (answer.ok) return answer;
      throw new Error(`${url}: ${answer.status} ${(await answer.text()).slice(0, 200)}`);
    } catch (error) {
      if (tries === 60) throw error;
      await new Promise((done) => setTimeout(done, 250));
    }
  }
}

const json = { "content-type": "application/json" };
try {
  await insist(`http://127.0.0.1:${admin}/health`);
  const body = JSON.stringify({ uri: `http://127.0.0.1:${own}`, force: true });
  await insist(`http://127.0.0.1:${admin}/deployments`, { method: "POST", headers: json, body });
  for (const handler of Object.keys({ sequential: 1, parallel: 1, replay: 1 })) {
    const answer = await fetch(`http://127.0.0.1:${ingress}/bench/${handler}`, { method: "POST" });
    if (!answer.ok) result.said.push(`${handler}: ${answer.status} ${(await answer.text()).slice(0, 200)}`);
  }
} catch (error) {
  result.said.push(`${String(error.message)}; the server said: ${log.slice(-600)}`);
}
process.kill(-server.pid, "SIGKILL");
await once(server, "close");
rmSync(folder, { recursive: true, force: true });
process.stdout.write(`\n${JSON.stringify(result)}\n`, () => process.exit(0));
