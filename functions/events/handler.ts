import deployment from "sluice:deployment";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import middy from "@middy/core";
import type { SQSEvent } from "aws-lambda";
import { intake } from "../../shared/nats/index.ts";
import { MAX_RECEIVES } from "../../shared/tasks/messages.ts";
import { publishMetrics } from "../../shared/telemetry/index.ts";
import { eachRecord, receives } from "../batch.ts";
import { outcomesOf } from "../choosing.ts";
import { hinter, teller, wire } from "../wiring.ts";
import { events } from "./events.ts";
import { inOrder } from "./in-order.ts";

const wiring = wire("events", deployment);
const deps = { ...wiring, hint: hinter(), tell: teller(wiring), outcomes: outcomesOf(wiring) };
const intakeDeps = {
  ...wiring,
  connection: () => wiring.nats.get(),
  decide: (message: Parameters<typeof events>[1]) => events(deps, message),
  // Many an event changes nothing, and leaves no record by which it could be known again.
  decided: async () => false,
};

/** Takes in the events that the bridge has forwarded. */
export const handler = middy((event: SQSEvent) => {
  const ordered = inOrder(event, (record, later) =>
    intake(intakeDeps, { body: record.body, receives: receives(record), maxReceives: MAX_RECEIVES, later }),
  );
  return eachRecord(ordered.event, wiring.telemetry, ordered.take);
})
  .use(injectLambdaContext(wiring.telemetry.logger))
  .use(publishMetrics(wiring.telemetry));
