import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import type { TableAccess } from "../../shared/tasks/dynamodb-transaction.ts";
import type { Store } from "../../shared/tasks/store.ts";
import { SimulatedTable } from "../simulation/parts/table.ts";
import { tableClient } from "../simulation/parts/table-client.ts";

/** The store over the table that is simulated, whose answers come at once (docs/simulation.md). */
export function simulatedStore(): Store {
  return dynamoStore(simulatedAccess());
}

/** Such a table, empty. */
export function simulatedAccess(): TableAccess {
  const client = tableClient(new SimulatedTable(), async ({ apply }) => apply());
  return { client, table: "tasks" };
}
