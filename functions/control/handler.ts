import deployment from "sluice:deployment";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import middy from "@middy/core";
import type { SQSEvent } from "aws-lambda";
import { intake } from "../../shared/nats/index.ts";
import { MAX_RECEIVES } from "../../shared/tasks/messages.ts";
import { publishMetrics } from "../../shared/telemetry/index.ts";
import { eachRecord, receives } from "../batch.ts";
import { hinter, teller, wire } from "../wiring.ts";
import { control } from "./control.ts";

const wiring = wire("control", deployment);
const deps = { ...wiring, hint: hinter(), tell: teller(wiring) };
const intakeDeps = {
  ...wiring,
  connection: () => wiring.nats.get(),
  decide: (message: Parameters<typeof control>[1]) => control(deps, message),
  // A control leaves no record by which it could be known again.
  decided: async () => false,
};

/** Answers the controls that the bridge has forwarded. */
export const handler = middy((event: SQSEvent) =>
  eachRecord(event, wiring.telemetry, (record, later) =>
    intake(intakeDeps, { body: record.body, receives: receives(record), maxReceives: MAX_RECEIVES, later }),
  ),
)
  .use(injectLambdaContext(wiring.telemetry.logger))
  .use(publishMetrics(wiring.telemetry));
