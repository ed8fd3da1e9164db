import { GetQueueAttributesCommand, SQSClient } from "@aws-sdk/client-sqs";
import * as z from "zod";
import { MAX_RECEIVES } from "../../shared/tasks/messages.ts";
import { type Pair, pairsOf } from "../dead/pairs.ts";
import { clientSettings, type Place } from "../place.ts";
import { countText } from "../text.ts";
import { examine, type Finding, isMissing, ok, warning, wrong } from "./finding.ts";

/** At as many the bridge forwards no more (functions/bridge/handler.ts). */
const FULL = 1_000;

/** Looks at the queues: that they are there, where their messages go that nobody takes, and how many they hold. */
export async function checkQueues(place: Place): Promise<readonly Finding[]> {
  const pairs = pairsOf(place.outputs);
  if (pairs.length === 0)
    return [
      wrong(
        "queues",
        "the stack does not tell its queues",
        "it is of an older version: deploy it, or start it, again",
      ),
    ];
  const client = new SQSClient(clientSettings(place, "sqs"));
  try {
    const todo = "allow sqs:GetQueueAttributes on the queue, to know";
    const found = await Promise.all(
      pairs.map((pair) => examine(`queue ${pair.name}`, todo, () => checkPair(client, pair))),
    );
    return found.flat();
  } finally {
    client.destroy();
  }
}

const count = z.coerce.number().int().nonnegative();
const attributes = z.object({
  QueueArn: z.string(),
  ApproximateNumberOfMessages: count,
  ApproximateNumberOfMessagesNotVisible: count,
  ApproximateNumberOfMessagesDelayed: count,
  RedrivePolicy: z.string().optional(),
});
type Attributes = z.infer<typeof attributes>;

async function checkPair(client: SQSClient, { name, url, deadUrl }: Pair): Promise<Finding[]> {
  const [queue, dead] = await Promise.all([read(client, url), read(client, deadUrl)]);
  const deploy = "deploy the stack again";
  const part = `queue ${name}`;
  const deadPart = `dead letters of ${name}`;
  if (queue === undefined || dead === undefined)
    return [
      ...(queue === undefined ? [wrong(part, "does not exist", deploy)] : []),
      ...(dead === undefined ? [wrong(deadPart, "the queue does not exist", deploy)] : []),
    ];
  return [queueFinding(part, queue, dead), deadFinding(deadPart, name, depthOf(dead))];
}

async function read(client: SQSClient, QueueUrl: string): Promise<Attributes | undefined> {
  const command = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] });
  try {
    return attributes.parse((await client.send(command)).Attributes ?? {});
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

const redrivePolicy = z.object({ deadLetterTargetArn: z.string(), maxReceiveCount: z.coerce.number() });

function queueFinding(part: string, queue: Attributes, dead: Attributes): Finding {
  const policy = redrivePolicy.safeParse(jsonOf(queue.RedrivePolicy)).data;
  const deploy = "deploy the stack again";
  if (policy === undefined)
    return wrong(part, "has no dead-letter queue: a message that kills its function comes for ever", deploy);
  if (policy.deadLetterTargetArn !== dead.QueueArn)
    return wrong(part, `its dead letters go to ${policy.deadLetterTargetArn}, where nobody looks`, deploy);
  if (policy.maxReceiveCount !== MAX_RECEIVES)
    return wrong(
      part,
      `gives a message up after ${policy.maxReceiveCount} receives; its function counts on ${MAX_RECEIVES}`,
      deploy,
    );
  const depth = depthOf(queue);
  if (depth >= FULL)
    return warning(
      part,
      `holds ${countText(depth, "message")}`,
      "see that its function runs, and what it logs; the bridge forwards no more until there are less",
    );
  return ok(part, `holds ${countText(depth, "message")}`);
}

function deadFinding(part: string, queue: string, depth: number): Finding {
  if (depth === 0) return ok(part, "none");
  return wrong(part, `${depth}`, `see why with ./sluice dead list --queue ${queue}; redrive or drop them`);
}

function depthOf(of: Attributes): number {
  return (
    of.ApproximateNumberOfMessages +
    of.ApproximateNumberOfMessagesNotVisible +
    of.ApproximateNumberOfMessagesDelayed
  );
}

function jsonOf(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}
