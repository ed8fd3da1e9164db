/** A host in a process of its own, so that it can be killed; it is told over the channel what to do. */
import { type Host, startHost } from "../../../infra/local/host.ts";
import { type FromHost, type StartOptions, toHost } from "./host-messages.ts";

/** How often the runner is told of processes that came and went, in milliseconds. */
const TELL_MS = 100;
/** Longer than the functions' clients try to reach NATS and to hear of a publish; half of what the cloud gives them. */
const SHORTEST_TIMEOUT_MS = 15_000;

const routed =
  Promise.withResolvers<Awaited<ReturnType<NonNullable<Parameters<typeof startHost>[0]["route"]>>>>();
let host: Host | undefined;
let told = "";

const tell = (message: FromHost) => void process.send?.(message);

async function start({ dataDir, assemblyDir, natsUrl, timeScale, env }: StartOptions): Promise<void> {
  host = await startHost({
    dataDir,
    assemblyDir,
    nats: { servers: [natsUrl] },
    timeScale,
    shortestTimeoutMs: SHORTEST_TIMEOUT_MS,
    env,
    route: (real) => {
      tell({ type: "route", real });
      return routed.promise;
    },
    log: (event) => {
      if (event.type === "trouble") tell({ type: "trouble", message: event.message });
    },
  });
  const { endpoints, tableName, bucketName, queueUrls } = host;
  tell({ type: "ready", ready: { endpoints, tableName, bucketName, queueUrls: { ...queueUrls } } });
  setInterval(tellProcesses, TELL_MS);
  tellProcesses();
}

function tellProcesses(): void {
  if (host === undefined) return;
  const functions = host.functions().map(({ name, pids }) => ({ name, pids: [...pids] }));
  const servers = host.servers().map(({ name, pid }) => (pid === undefined ? { name } : { name, pid }));
  const now = JSON.stringify({ functions, servers });
  if (now === told) return;
  told = now;
  tell({ type: "processes", processes: { functions, servers } });
}

process.on("message", async (message) => {
  const read = toHost.parse(message);
  if (read.type === "start") await start(read.options);
  if (read.type === "routed") routed.resolve(read.seen);
  if (read.type === "stop") {
    await host?.stop();
    process.exit(0);
  }
});
process.on("disconnect", () => process.exit(1)); // the runner is gone
