import deployment from "sluice:deployment";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import middy from "@middy/core";
import type { SQSEvent } from "aws-lambda";
import { intake } from "../../shared/nats/index.ts";
import { MAX_RECEIVES } from "../../shared/tasks/messages.ts";
import { publishMetrics } from "../../shared/telemetry/index.ts";
import { parseSubject, taskIdOf } from "../../shared/wire/index.ts";
import { eachRecord, receives } from "../batch.ts";
import { hinter, pausesOf, wire } from "../wiring.ts";
import { admit } from "./admit.ts";
import { Backlog } from "./backlog.ts";
import { cardSkills } from "./card-skills.ts";
import { quotaOf } from "./quota.ts";

const wiring = wire("admit", deployment);
const deps = {
  ...wiring,
  hint: hinter(),
  pauses: pausesOf(wiring),
  backlog: new Backlog(),
  quota: quotaOf(wiring),
  skills: cardSkills(wiring),
};
const intakeDeps = {
  ...wiring,
  connection: () => wiring.nats.get(),
  decide: (message: Parameters<typeof admit>[1]) => admit(deps, message),
  decided: async ({ subject }: { subject: string }) => {
    const parsed = parseSubject(subject);
    if (parsed?.kind !== "task") return false;
    return (await wiring.store.head(taskIdOf(parsed.from, parsed.to, parsed.messageId))) !== undefined;
  },
};

/** Decides the task messages that the bridge has forwarded. */
export const handler = middy((event: SQSEvent) =>
  eachRecord(event, wiring.telemetry, (record, later) =>
    intake(intakeDeps, { body: record.body, receives: receives(record), maxReceives: MAX_RECEIVES, later }),
  ),
)
  .use(injectLambdaContext(wiring.telemetry.logger))
  .use(publishMetrics(wiring.telemetry));
