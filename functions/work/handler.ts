import { agents, front } from "sluice:agents";
import deployment from "sluice:deployment";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import middy from "@middy/core";
import type { Context, SQSEvent } from "aws-lambda";
import type { Head } from "../../shared/tasks/items.ts";
import { workHint } from "../../shared/tasks/messages.ts";
import { publishMetrics } from "../../shared/telemetry/index.ts";
import { eachRecord } from "../batch.ts";
import { choosingOf } from "../choosing.ts";
import { hinter, newsSubject, pausesOf, wire } from "../wiring.ts";
import { tellRemoteBy } from "./remote.ts";
import { watchStrays } from "./strays.ts";
import { work } from "./work.ts";

const wiring = wire("work", deployment);
const deps = {
  ...wiring,
  pauses: pausesOf(wiring),
  choosing: choosingOf(wiring),
  agents: agents.map(({ id, load }) => ({ id, load: (head: Head) => load(head, wiring) })),
  tellRemote: front && tellRemoteBy(wiring, front),
  runner: async () => (await import("./run.ts")).runTask,
  hint: hinter(),
  listen: async (taskId: string, told: () => void) => {
    const nc = await wiring.nats.get();
    const subscription = nc.subscribe(newsSubject(wiring.deployment.deployment, taskId), { callback: told });
    return () => subscription.unsubscribe();
  },
};

watchStrays(wiring.telemetry);

let guarded = false;
/** Agents' code runs only when a task has come for it: a start need not wait for the guard's thread. */
async function guard(): Promise<void> {
  if (guarded) return;
  const { guardMainThread } = await import("./guard.ts");
  guardMainThread(wiring.timing);
  guarded = true;
}

/** Works on the task that a hint speaks of. */
export const handler = middy((event: SQSEvent, context: Context) => {
  const endsAt = Date.now() + context.getRemainingTimeInMillis();
  return eachRecord(event, wiring.telemetry, (record) =>
    work(deps, workHint().parse(JSON.parse(record.body)), { endsAt }),
  );
})
  .use({ before: guard })
  .use(injectLambdaContext(wiring.telemetry.logger))
  .use(publishMetrics(wiring.telemetry));
