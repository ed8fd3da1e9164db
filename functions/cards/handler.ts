import deployment from "sluice:deployment";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { publishMetrics } from "../../shared/telemetry/index.ts";
import { insistOnCards } from "./cards.ts";
import { wireCards } from "./wiring.ts";

const wiring = wireCards(deployment);

/** Shows the agents' cards and signs of life. */
export const handler = middy(async (_event: unknown, context: Context) => {
  await insistOnCards(wiring, Date.now() + context.getRemainingTimeInMillis() - wiring.timing.marginMs);
})
  .use(injectLambdaContext(wiring.telemetry.logger))
  .use(publishMetrics(wiring.telemetry));
