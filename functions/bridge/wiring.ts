import { SQSClient } from "@aws-sdk/client-sqs";
import { awsClient } from "../../shared/config/aws-client.ts";
import { readBundled } from "../../shared/config/bundled.ts";
import { natsAccess, readEnv } from "../../shared/config/env.ts";
import { timingFromEnv } from "../../shared/config/timing.ts";
import { clientName, NatsLink } from "../../shared/nats/index.ts";
import { createTelemetry, type PowertoolsTelemetry } from "../../shared/telemetry/index.ts";
import type { BridgeDeps, BridgeRun } from "./bridge.ts";

/** How many messages each queue may hold. */
const BOUND = 1_000;

/** What the bridge keeps from one run to the next, in either of its forms. */
export interface BridgeWiring extends Omit<BridgeDeps, "remainingMs" | "telemetry" | "link"> {
  readonly link: NatsLink;
  readonly telemetry: PowertoolsTelemetry;
}

/**
 * Makes the bridge's clients. Nothing is connected before it is used.
 *
 * @param deployment what `sluice:deployment` holds
 */
export function wireBridge(deployment: Readonly<Record<string, unknown>>): BridgeWiring {
  const config = readBundled(deployment);
  const env = readEnv(
    ["TASKS_QUEUE_URL", "CONTROLS_QUEUE_URL", "EVENTS_QUEUE_URL", "INSTANCE_ID"],
    process.env,
  );
  const timing = timingFromEnv(process.env);
  const telemetry = createTelemetry(timing);
  const nats = natsAccess(config, process.env);
  const link = new NatsLink(() => ({
    ...nats(),
    name: clientName(config.deployment, "bridge"),
  }));
  link.onDisconnect(() => telemetry.count("NatsDisconnects"));
  return {
    link,
    sqs: new SQSClient({
      ...awsClient(),
      maxAttempts: 2,
      cacheMiddleware: true,
    }),
    telemetry,
    timing,
    instance: env.INSTANCE_ID,
    settings: {
      get runtimes() {
        return config.agents.map(({ runtime, policy }) => ({
          runtime,
          // Without a target nothing can be handed on.
          delegates: policy.delegateTargets.length > 0,
        }));
      },
      tasksQueueUrl: env.TASKS_QUEUE_URL,
      controlsQueueUrl: env.CONTROLS_QUEUE_URL,
      eventsQueueUrl: env.EVENTS_QUEUE_URL,
      bound: BOUND,
    },
  };
}

/** Says what a run has done. */
export function tellRun({ telemetry }: Pick<BridgeWiring, "telemetry">, run: BridgeRun): void {
  telemetry.info("the run is over", { ...run });
  telemetry.count("MessagesForwarded", run.forwarded);
  if (run.redelivered > 0) telemetry.count("MessagesRedelivered", run.redelivered);
  if (run.givenBack > 0) telemetry.count("MessagesNotForwarded", run.givenBack);
}
