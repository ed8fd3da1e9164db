import deployment from "sluice:deployment";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { publishMetrics } from "../../shared/telemetry/index.ts";
import { insistOnCards } from "./cards.ts";
import { wireCards } from "./wiring.ts";

const wiring = wireCards(deployment);

/** Shows the agents' cards and signs of life, and keeps their A2A cards signed. */
export const handler = middy(async (_event: unknown, context: Context) => {
  const found = await insistOnCards(
    wiring,
    Date.now() + context.getRemainingTimeInMillis() - wiring.timing.marginMs,
  );
  // The cards on NATS wait for none of it; whatever fails here the next run does again.
  const { keepAgentCards } = await import("./agent-cards.ts");
  await keepAgentCards(wiring, found);
})
  .use(injectLambdaContext(wiring.telemetry.logger))
  .use(publishMetrics(wiring.telemetry));
