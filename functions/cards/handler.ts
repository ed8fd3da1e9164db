import deployment from "sluice:deployment";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { publishMetrics } from "../../shared/telemetry/index.ts";
import { everyMinute, remotesDeps } from "./minute.ts";
import { wireCards } from "./wiring.ts";

const wiring = wireCards(deployment);

/**
 * Each minute: shows the agents' cards and signs of life, and sees how other peers and the remote agents are. Or, when an
 * operator wants it (`{ "refresh": … }`), fetches cards of remote agents at once.
 */
export const handler = middy(async (event: unknown, context: Context) => {
  const until = Date.now() + context.getRemainingTimeInMillis() - wiring.timing.marginMs;
  const run = { id: context.awsRequestId, until };
  if (typeof event !== "object" || event === null || !("refresh" in event)) return everyMinute(wiring, run);
  const { refreshOnDemand } = await import("./refresh.ts");
  return refreshOnDemand(event, await remotesDeps(wiring, run));
})
  .use(injectLambdaContext(wiring.telemetry.logger))
  .use(publishMetrics(wiring.telemetry));
