import type { SQSRecord } from "aws-lambda";

/** A record as SQS gives it to a function, received so many times. */
export function recordOf(messageId: string, body: string, receives = "1"): SQSRecord {
  return {
    messageId,
    receiptHandle: messageId,
    body,
    attributes: {
      ApproximateReceiveCount: receives,
      SentTimestamp: "0",
      SenderId: "",
      ApproximateFirstReceiveTimestamp: "0",
    },
    messageAttributes: {},
    md5OfBody: "",
    eventSource: "aws:sqs",
    eventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:work",
    awsRegion: "eu-central-1",
  };
}
