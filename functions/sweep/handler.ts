import deployment from "sluice:deployment";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { publishMetrics } from "../../shared/telemetry/index.ts";
import { hinter, wire } from "../wiring.ts";
import { sweep } from "./sweep.ts";

const wiring = wire("sweep", deployment);
const deps = { ...wiring, hint: hinter() };

/** Attends to every task that is due and nobody holds. */
export const handler = middy(async (_event: unknown, context: Context) => {
  const until = Date.now() + context.getRemainingTimeInMillis() - wiring.timing.marginMs;
  const looked = await sweep(deps, until);
  wiring.telemetry.count("TasksDue", looked);
})
  .use(injectLambdaContext(wiring.telemetry.logger))
  .use(publishMetrics(wiring.telemetry));
