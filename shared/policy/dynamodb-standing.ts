import { readItems } from "../tasks/dynamodb-batch.ts";
import { PAUSE_KEY } from "../tasks/dynamodb-pauses.ts";
import type { TableAccess } from "../tasks/dynamodb-transaction.ts";
import { pause } from "../tasks/pauses.ts";
import { slotsPartition } from "../tasks/slots.ts";
import { runtimePolicy } from "./runtime-policy.ts";
import type { Standing, StandingStore } from "./standing.ts";

/** The partition of what was changed of an agent's policy, and of what is told of that (docs/table.md). */
export function policyPartition(runtime: string): string {
  return `policy#${runtime}`;
}

/** The sort key of the item that the policy in force is made of. */
export const POLICY_KEY = "policy";

/** How the agents stand over DynamoDB: one request for both of an agent's items. */
export function dynamoStandings(access: TableAccess): StandingStore {
  return { standingOf: (runtime) => readStanding(access, runtime) };
}

async function readStanding(access: TableAccess, runtime: string): Promise<Standing> {
  const items = await readItems(access, [
    { pk: slotsPartition(runtime), sk: PAUSE_KEY },
    { pk: policyPartition(runtime), sk: POLICY_KEY },
  ]);
  const item = (sk: string) => items.find((of) => of.sk === sk);
  const [paused, policy] = [item(PAUSE_KEY), item(POLICY_KEY)];
  return {
    ...(paused !== undefined && { pause: pause().parse(paused) }),
    ...(policy !== undefined && { policy: runtimePolicy().parse(policy) }),
  };
}
