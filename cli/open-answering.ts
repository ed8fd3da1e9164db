import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { S3Client } from "@aws-sdk/client-s3";
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { timing } from "../shared/config/timing.ts";
import { type Answered, answerAsOperator, type Verdict } from "../shared/events/operator-answer.ts";
import { dynamoStore } from "../shared/tasks/dynamodb-store.ts";
import type { Head } from "../shared/tasks/items.ts";
import { s3Values } from "../shared/tasks/values.ts";
import { stackAgent } from "./agent-name.ts";
import { hintAt } from "./hint.ts";
import type { Home } from "./home.ts";
import { queueOf } from "./pauses.ts";
import { clientSettings, findPlace, reach } from "./place.ts";

/** A stack whose tasks the operator may answer. */
export interface OpenAnswering extends Disposable {
  /** What it is called in an error. */
  readonly label: string;
  answer(task: string, verdict: Verdict): Promise<Answered>;
}

/** @throws CliError as {@link findPlace} */
export async function openAnswering(
  home: Pick<Home, "stack" | "deployment" | "agents">,
  name?: string,
): Promise<OpenAnswering> {
  const place = await findPlace(home, name);
  const { label, local, outputs } = place;
  const dynamodb = new DynamoDBClient(clientSettings(place, "dynamodb"));
  const sqs = new SQSClient(clientSettings(place, "sqs"));
  const access = {
    client: DynamoDBDocumentClient.from(dynamodb, { marshallOptions: { removeUndefinedValues: true } }),
    table: outputs.TableName,
  };
  const values = s3Values({
    bucket: outputs.BucketName,
    client: async () => new S3Client({ ...clientSettings(place, "s3"), forcePathStyle: local !== undefined }),
  });
  const hint = async (head: Head) => {
    const { body, delaySec } = hintAt(head, { timing: timing(local?.timeScale), now: Date.now() });
    const queueUrl = queueOf(place, stackAgent(home, place, head.to).id);
    await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: body, DelaySeconds: delaySec }));
  };
  const deps = { store: dynamoStore(access), values, now: () => Date.now(), hint };
  return {
    label,
    answer: (task, verdict) => reach(label, answerAsOperator(deps, task, verdict)),
    [Symbol.dispose]() {
      dynamodb.destroy();
      sqs.destroy();
    },
  };
}
