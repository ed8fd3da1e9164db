import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { dynamoPeers } from "../../shared/cards/dynamodb-peers.ts";
import type { PeerStore } from "../../shared/cards/peer-store.ts";
import { circuit } from "../../shared/policy/choosing/circuit.ts";
import { dynamoItems } from "../../shared/policy/choosing/dynamodb-items.ts";
import type { TableAccess } from "../../shared/tasks/dynamodb-transaction.ts";
import { clientSettings, type Place } from "../place.ts";
import type { Circuits } from "./circuits.ts";

/** What a stack knows of peers. */
export interface OpenPeers extends Disposable {
  readonly access: TableAccess;
  readonly store: PeerStore;
  /** The circuits of remote agents; of those that were not called lately there is none. */
  circuits(names: readonly string[]): Promise<Circuits>;
}

export function openPeers(place: Place): OpenPeers {
  const dynamodb = new DynamoDBClient(clientSettings(place, "dynamodb"));
  const access = { client: DynamoDBDocumentClient.from(dynamodb), table: place.outputs.TableName };
  return {
    access,
    store: dynamoPeers(access),
    circuits: (names) => dynamoItems(access, "circuit", circuit).readAll(names),
    [Symbol.dispose]: () => dynamodb.destroy(),
  };
}
