import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Telemetry } from "./index.ts";

/** How DynamoDB says that there was too much (Amazon DynamoDB API Reference, "Common errors"). */
const THROTTLED = new Set([
  "ProvisionedThroughputExceededException",
  "RequestLimitExceeded",
  "ThrottlingException",
]);

/** Counts each attempt that DynamoDB throttles: the client repeats it, so that nobody else would know. */
export function countThrottled(client: DynamoDBClient, telemetry: Pick<Telemetry, "count">): void {
  client.middlewareStack.add(
    (next, context) => async (args) => {
      try {
        return await next(args);
      } catch (error) {
        if (error instanceof Error && THROTTLED.has(error.name)) {
          const operation = context.commandName?.replace(/Command$/, "") ?? "unknown";
          telemetry.count("RequestsThrottled", 1, { operation });
        }
        throw error;
      }
    },
    // Inside the client's own repetition.
    { name: "countThrottled", step: "finalizeRequest", priority: "low" },
  );
}
