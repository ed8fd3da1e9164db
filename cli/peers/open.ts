import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { dynamoPeers } from "../../shared/cards/dynamodb-peers.ts";
import type { PeerStore } from "../../shared/cards/peer-store.ts";
import type { TableAccess } from "../../shared/tasks/dynamodb-transaction.ts";
import { clientSettings, type Place } from "../place.ts";

/** What a stack knows of peers. */
export interface OpenPeers extends Disposable {
  readonly access: TableAccess;
  readonly store: PeerStore;
}

export function openPeers(place: Place): OpenPeers {
  const dynamodb = new DynamoDBClient(clientSettings(place, "dynamodb"));
  const access = { client: DynamoDBDocumentClient.from(dynamodb), table: place.outputs.TableName };
  return { access, store: dynamoPeers(access), [Symbol.dispose]: () => dynamodb.destroy() };
}
