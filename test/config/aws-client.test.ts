import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { DynamoDBClient, GetItemCommand } from "@aws-sdk/client-dynamodb";
import { AWS_CLIENT } from "../../cli/place.ts";
import { awsClient } from "../../shared/config/aws-client.ts";

let asked = 0;
const silent = createServer(() => void asked++).listen(0, "127.0.0.1");
await once(silent, "listening");
after(() => {
  silent.closeAllConnections();
  silent.close();
});
const endpoint = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;

/** Asserts that a request fails by itself, once it was tried as often as may be. */
async function assertFails({ maxAttempts, requestHandler }: ReturnType<typeof awsClient>): Promise<void> {
  asked = 0;
  const client = new DynamoDBClient({
    endpoint,
    region: "eu-central-1",
    credentials: { accessKeyId: "none", secretAccessKey: "none" },
    maxAttempts,
    requestHandler: { ...requestHandler, requestTimeout: 50 },
  });
  const command = new GetItemCommand({ TableName: "tasks", Key: { pk: { S: "x" } } });
  await assert.rejects(client.send(command), { name: "TimeoutError" });
  assert.equal(asked, maxAttempts);
  client.destroy();
}

test("a request of the functions that is never answered fails, after a few tries", () =>
  assertFails(awsClient()));
test("a request of the command that is never answered fails, after a few tries", () =>
  assertFails(AWS_CLIENT));
