import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { dynamoNotes } from "../../shared/cards/dynamodb-notes.ts";
import { awsClient } from "../../shared/config/aws-client.ts";
import { readBundled } from "../../shared/config/bundled.ts";
import { natsAccess, readEnv } from "../../shared/config/env.ts";
import { type Timing, timingFromEnv } from "../../shared/config/timing.ts";
import { clientName, NatsLink } from "../../shared/nats/index.ts";
import { createTelemetry, type PowertoolsTelemetry } from "../../shared/telemetry/index.ts";
import { countThrottled } from "../../shared/telemetry/throttled.ts";
import type { MinuteDeps } from "./minute.ts";

/** What a sandbox keeps from one run to the next. */
export interface CardsWiring extends Omit<MinuteDeps, "telemetry" | "timing"> {
  readonly telemetry: PowertoolsTelemetry;
  readonly timing: Timing;
}

/**
 * Makes the function's clients. Nothing is connected before it is used.
 *
 * @param deployment what `sluice:deployment` holds
 */
export function wireCards(deployment: Readonly<Record<string, unknown>>): CardsWiring {
  const config = readBundled(deployment);
  const env = readEnv(["TABLE_NAME", "INSTANCE_ID"], process.env);
  const timing = timingFromEnv(process.env);
  const telemetry = createTelemetry(timing);
  const nats = natsAccess(config, process.env);
  const link = new NatsLink(() => ({
    ...nats(),
    name: clientName(config.deployment, "cards"),
  }));
  link.onDisconnect(() => telemetry.count("NatsDisconnects"));
  const dynamodb = new DynamoDBClient(awsClient());
  countThrottled(dynamodb, telemetry);
  const access = { client: DynamoDBDocumentClient.from(dynamodb), table: env.TABLE_NAME };
  return {
    connection: () => link.get(),
    notes: dynamoNotes(access),
    access,
    env: process.env,
    vault: async (fresh) =>
      (await import("../../shared/cards/key-vault.ts")).keyVault(process.env, { fresh }),
    deployment: config,
    get servers() {
      return nats().servers;
    },
    instance: env.INSTANCE_ID,
    startedAt: Date.now(),
    telemetry,
    timing,
    now: Date.now,
  };
}
