import { GetQueueAttributesCommand, type SQSClient } from "@aws-sdk/client-sqs";

/**
 * How many messages a queue holds: visible, in flight and delayed together. SQS's counts are approximate, and may lag
 * behind for up to a minute after the last message was sent (SQS API: GetQueueAttributes).
 */
export async function depth(client: SQSClient, queueUrl: string, signal?: AbortSignal): Promise<number> {
  const command = new GetQueueAttributesCommand({
    QueueUrl: queueUrl,
    AttributeNames: [
      "ApproximateNumberOfMessages",
      "ApproximateNumberOfMessagesNotVisible",
      "ApproximateNumberOfMessagesDelayed",
    ],
  });
  const { Attributes = {} } = await client.send(command, signal === undefined ? {} : { abortSignal: signal });
  return (
    count(Attributes.ApproximateNumberOfMessages) +
    count(Attributes.ApproximateNumberOfMessagesNotVisible) +
    count(Attributes.ApproximateNumberOfMessagesDelayed)
  );
}

function count(text: string | undefined): number {
  const number = Number(text);
  if (text === undefined || !Number.isSafeInteger(number) || number < 0)
    throw new Error(
      `SQS queue attributes: expected a count, got ${text === undefined ? "nothing" : `"${text}"`}`,
    );
  return number;
}
