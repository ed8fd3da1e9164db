import { setTimeout as wait } from "node:timers/promises";
import type { Hooks, Part, Point, Refusal, Verdict } from "../../support/proxy/points.ts";
import type { Chance } from "./chance.ts";
import type { Action } from "./plan.ts";

type Weather = Extract<Action, { kind: "weather" }>;

/** Shorter than a client waits for an answer, so that a request is slow and not lost. */
const LONGEST_DELAY_MS = 900;

/** What the proxies do to requests while a weather lasts. Whole connections are the proxies' own affair. */
export function hooksOf({ part, effect, share }: Weather, chance: Chance, met: () => void): Hooks {
  const mine = (of: Part) => of === part && chance.happens(share);
  const note = <T>(verdict: T): T => {
    met();
    return verdict;
  };
  const late = async (): Promise<undefined> => {
    met();
    await wait(chance.int(10, LONGEST_DELAY_MS));
  };
  const refuse = (kind: string) => note(refusal(part, effect, kind));
  const before = (point: Point): Verdict | undefined | Promise<undefined> => {
    if (!mine(point.part)) return undefined;
    if (effect === "delay") return late();
    if (effect === "drop") return note("drop");
    if (effect === "twice") return note("twice");
    return effect === "unanswered" || effect === "unreachable" ? undefined : refuse(point.kind);
  };
  return {
    before,
    after: (point) => (effect === "unanswered" && mine(point.part) ? note("drop") : undefined),
    read: (of, kind) => {
      if (!mine(of) || effect === "twice" || effect === "unreachable") return undefined;
      if (effect === "delay") return late();
      return effect === "drop" || effect === "unanswered" ? note("drop") : refuse(kind);
    },
  };
}

/** The services' own words (DynamoDB, SQS and S3 API references, "Errors"). */
function refusal(part: Part, effect: Weather["effect"], kind: string): Refusal {
  if (part === "s3") return effect === "throttle" ? xml(503, "SlowDown") : xml(500, "InternalError");
  if (part === "sqs")
    return effect === "throttle"
      ? json(400, "com.amazonaws.sqs#RequestThrottled")
      : json(500, "com.amazonaws.sqs#InternalError");
  const name = "com.amazonaws.dynamodb.v20120810#";
  if (effect === "throttle") return json(400, `${name}ProvisionedThroughputExceededException`);
  if (effect === "error") return json(500, `${name}InternalServerError`);
  if (!kind.includes("TransactWriteItems")) return json(400, `${name}TransactionConflictException`);
  const reason = { Code: "TransactionConflict", Message: "Transaction is ongoing for the item" };
  return json(400, `${name}TransactionCanceledException`, { CancellationReasons: [reason] });
}

function json(status: number, type: string, further: object = {}): Refusal {
  const body = JSON.stringify({
    __type: type,
    message: "the adversary refuses",
    Message: "the adversary refuses",
    ...further,
  });
  return { status, headers: { "content-type": "application/x-amz-json-1.0" }, body };
}

function xml(status: number, code: string): Refusal {
  const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>the adversary refuses</Message></Error>`;
  return { status, headers: { "content-type": "application/xml" }, body };
}
