import deployment from "sluice:deployment";
import { healthServer } from "./health.ts";
import { serve } from "./serve.ts";
import { wireBridge } from "./wiring.ts";

/** The bridge as a process of its own: it runs until it is asked to stop, and ends with 0 when nothing is in hand. */
async function main(): Promise<void> {
  const wiring = wireBridge(deployment);
  const stopping = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stopping.abort());

  const service = serve(wiring, stopping.signal);
  const health = await healthServer(Number(process.env.HEALTH_PORT ?? 0), () => service.healthy());
  await service.ended;
  health.close();
  health.closeAllConnections(); // also of whoever has asked nothing yet
  await wiring.link.close();
  wiring.sqs.destroy();
}

// Not awaited here: what is imported later would wait for the end of this module (infra/function-build.ts).
void main();
