import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { dynamoPauses } from "../shared/tasks/dynamodb-pauses.ts";
import { dynamoStore } from "../shared/tasks/dynamodb-store.ts";
import type { PauseStore } from "../shared/tasks/pauses.ts";
import type { Store } from "../shared/tasks/store.ts";
import { s3Values, type Values } from "../shared/tasks/values.ts";
import type { Home } from "./home.ts";
import { clientSettings, findPlace, type Place } from "./place.ts";

/** Where a deployment keeps its tasks, open for reading alone. */
export interface OpenStack extends Disposable {
  /** What it is called in an error. */
  readonly label: string;
  readonly store: Pick<Store, "head" | "entries" | "input" | "slots">;
  readonly pauses: Pick<PauseStore, "pauseOf">;
  readonly values: Pick<Values, "text">;
}

/**
 * Opens the stack of that name, or the one of the local host that runs in this folder.
 *
 * @throws CliError as {@link findPlace}
 */
export async function openStack(home: Pick<Home, "stack">, name?: string): Promise<OpenStack> {
  return openPlace(await findPlace(home, name));
}

/** Opens what was found. */
export function openPlace(place: Place): OpenStack {
  const { label, local, outputs } = place;
  const client = new DynamoDBClient(clientSettings(place, "dynamodb"));
  const values = s3Values({
    bucket: outputs.BucketName,
    client: async () => {
      const { S3Client } = await import("@aws-sdk/client-s3");
      return new S3Client({ ...clientSettings(place, "s3"), forcePathStyle: local !== undefined });
    },
  });
  const access = { client: DynamoDBDocumentClient.from(client), table: outputs.TableName };
  return {
    label,
    store: dynamoStore(access),
    pauses: dynamoPauses(access),
    values,
    [Symbol.dispose]: () => client.destroy(),
  };
}
