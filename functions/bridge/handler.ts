import deployment from "sluice:deployment";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { publishMetrics } from "../../shared/telemetry/index.ts";
import { runBridge } from "./bridge.ts";
import { tellRun, wireBridge } from "./wiring.ts";

const wiring = wireBridge(deployment);

/** Carries messages from NATS to the queues for as long as the invocation lasts. */
export const handler = middy(async (_event: unknown, context: Context) => {
  const remainingMs = () => context.getRemainingTimeInMillis();
  tellRun(wiring, await runBridge({ ...wiring, remainingMs }));
})
  .use(injectLambdaContext(wiring.telemetry.logger))
  .use(publishMetrics(wiring.telemetry));
