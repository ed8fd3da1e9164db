import deployment from "sluice:deployment";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import { SQSClient } from "@aws-sdk/client-sqs";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { parseDeployment } from "../../shared/config/deployment.ts";
import { natsAccess, readEnv } from "../../shared/config/env.ts";
import { timingFromEnv } from "../../shared/config/timing.ts";
import { clientName, NatsLink } from "../../shared/nats/index.ts";
import { createTelemetry, publishMetrics } from "../../shared/telemetry/index.ts";
import { runBridge } from "./bridge.ts";

/** How many messages each queue may hold. */
const BOUND = 1_000;

const config = parseDeployment(deployment);
const env = readEnv(["TASKS_QUEUE_URL", "CONTROLS_QUEUE_URL", "EVENTS_QUEUE_URL"], process.env);
const telemetry = createTelemetry();
const deps = {
  link: new NatsLink({ ...natsAccess(config, process.env), name: clientName(config.deployment, "bridge") }),
  sqs: new SQSClient({
    maxAttempts: 2,
    requestHandler: { connectionTimeout: 1_000, requestTimeout: 4_000 },
  }),
  telemetry,
  timing: timingFromEnv(process.env),
  settings: {
    runtimes: config.agents.map(({ runtime, policy }) => ({
      runtime,
      // Without a target nothing can be handed on.
      delegates: policy.delegateTargets.length > 0,
    })),
    tasksQueueUrl: env.TASKS_QUEUE_URL,
    controlsQueueUrl: env.CONTROLS_QUEUE_URL,
    eventsQueueUrl: env.EVENTS_QUEUE_URL,
    bound: BOUND,
  },
};

/** Carries messages from NATS to the queues for as long as the invocation lasts. */
export const handler = middy(async (_event: unknown, context: Context) => {
  const run = await runBridge({ ...deps, remainingMs: () => context.getRemainingTimeInMillis() });
  telemetry.info("the run is over", { ...run });
  telemetry.count("MessagesForwarded", run.forwarded);
  if (run.givenBack > 0) telemetry.count("MessagesNotForwarded", run.givenBack);
})
  .use(injectLambdaContext(telemetry.logger))
  .use(publishMetrics(telemetry));
