import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { type Head, head } from "./items.ts";

/** The states in which a task may be claimed. */
export const LIVE = {
  ":submitted": "TASK_STATE_SUBMITTED",
  ":working": "TASK_STATE_WORKING",
  ":input": "TASK_STATE_INPUT_REQUIRED",
  ":auth": "TASK_STATE_AUTH_REQUIRED",
};
/** Whether a head is in one of them; needs the name `#state`. */
export const IS_LIVE = "#state IN (:submitted, :working, :input, :auth)";

/** An update of a head, in DynamoDB's expressions. */
export interface HeadUpdate {
  readonly set: readonly string[];
  readonly remove: readonly string[];
  readonly condition: string;
  readonly names: Record<string, string>;
  readonly values: Record<string, unknown>;
}

export function toHead(item: Record<string, unknown>): Head {
  return head().parse({ ...item, taskId: item.pk });
}

/** The item that was there when a condition failed (DynamoDB API: ReturnValuesOnConditionCheckFailure). */
export function found(error: unknown): Record<string, unknown> | undefined {
  if (!(error instanceof ConditionalCheckFailedException)) throw error;
  return error.Item === undefined ? undefined : unmarshall(error.Item);
}
