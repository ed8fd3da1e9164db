import { agents } from "sluice:agents";
import deployment from "sluice:deployment";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import middy from "@middy/core";
import type { Context, SQSEvent } from "aws-lambda";
import { workHint } from "../../shared/tasks/messages.ts";
import { publishMetrics } from "../../shared/telemetry/index.ts";
import { eachRecord } from "../batch.ts";
import { hinter, newsSubject, pausesOf, wire } from "../wiring.ts";
import { guardMainThread } from "./guard.ts";
import { watchStrays } from "./strays.ts";
import { work } from "./work.ts";

const wiring = wire("work", deployment);
guardMainThread(wiring.timing);
const deps = {
  ...wiring,
  pauses: pausesOf(wiring),
  agents,
  hint: hinter(),
  listen: async (taskId: string, told: () => void) => {
    const nc = await wiring.nats.get();
    const subscription = nc.subscribe(newsSubject(wiring.deployment.deployment, taskId), { callback: told });
    return () => subscription.unsubscribe();
  },
};

watchStrays(wiring.telemetry);

/** Works on the task that a hint speaks of. */
export const handler = middy((event: SQSEvent, context: Context) => {
  const endsAt = Date.now() + context.getRemainingTimeInMillis();
  return eachRecord(event, wiring.telemetry, (record) =>
    work(deps, workHint.parse(JSON.parse(record.body)), { endsAt }),
  );
})
  .use(injectLambdaContext(wiring.telemetry.logger))
  .use(publishMetrics(wiring.telemetry));
