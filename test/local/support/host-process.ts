/** A host in a process of its own, to be killed: `host-process.ts DATA ASSEMBLY`; says `ready` when it is. */
import { join } from "node:path";
import { startHost } from "../../../infra/local/host.ts";

const [dataDir = "", assemblyDir = ""] = process.argv.slice(2);
await startHost({ dataDir, assemblyDir, natsPort: 0, env: { OUT: join(dataDir, "seen.txt") } });
console.log("ready");
