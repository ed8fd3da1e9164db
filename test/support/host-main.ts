/** A host in a process of its own, to be killed: `host-main.ts DATA ASSEMBLY NATS-URL TIME-SCALE`. */
import { startHost } from "../../infra/local/host.ts";

const [dataDir = "", assemblyDir = "", natsUrl = "", timeScale = "1"] = process.argv.slice(2);
await startHost({ dataDir, assemblyDir, nats: { servers: [natsUrl] }, timeScale: Number(timeScale) });
console.log("ready");
