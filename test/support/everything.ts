import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { GetObjectCommand, ListObjectsV2Command, type S3Client } from "@aws-sdk/client-s3";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import * as z from "zod";

const keyed = z.looseObject({ pk: z.string(), sk: z.string() });

/** Where a deployment keeps what it was given. */
export interface Kept {
  readonly dynamodb: DynamoDBClient;
  readonly table: string;
  readonly s3: S3Client;
  readonly bucket: string;
  readonly nc: NatsConnection;
}

/**
 * All that the table, the bucket and all streams hold: a text for each item, object and message, by what names it.
 */
export async function everything({ dynamodb, table, s3, bucket, nc }: Kept): Promise<Map<string, string>> {
  const all = new Map<string, string>();
  const { Items = [] } = await dynamodb.send(new ScanCommand({ TableName: table }));
  for (const item of Items.map((of) => keyed.parse(of)))
    all.set(`table ${item.pk} ${item.sk}`, JSON.stringify(item, sorted));
  const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket: bucket }));
  for (const { Key = "" } of Contents) {
    const { Body } = await s3.send(new GetObjectCommand({ Bucket: bucket, Key }));
    all.set(`bucket ${Key}`, (await Body?.transformToString()) ?? "");
  }
  const jsm = await jetstreamManager(nc);
  for await (const { config, state } of jsm.streams.list()) {
    const deleted = new Set((await jsm.streams.info(config.name, { deleted_details: true })).state.deleted);
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const message = deleted.has(seq) ? null : await jsm.streams.getMessage(config.name, { seq });
      if (message !== null) all.set(`${config.name} ${message.subject} ${seq}`, message.string());
    }
  }
  return all;
}

/** DynamoDB's maps have no order. */
function sorted(_: string, value: unknown): unknown {
  const map = Array.isArray(value) ? undefined : z.record(z.string(), z.unknown()).safeParse(value).data;
  return map === undefined
    ? value
    : Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)));
}
