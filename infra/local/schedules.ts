import { randomUUID } from "node:crypto";
import { ACCOUNT, REGION } from "./intrinsics.ts";
import type { InvocationResult } from "./runtime-api.ts";
import type { ScheduleDeclaration } from "./stack.ts";

/** AWS Lambda: "How Lambda handles errors and retries with asynchronous invocation": two more, 1 and 2 minutes later. */
const RETRY_AFTER_MS = [60_000, 120_000];
/**
 * How many events of one schedule may wait or run. Lambda would keep them for hours; on one machine an event more
 * would say nothing that those before it did not.
 */
const MAX_OPEN_EVENTS = 3;

export interface ScheduleOptions {
  readonly schedule: ScheduleDeclaration;
  readonly scale: number;
  readonly invoke: (payload: string) => Promise<InvocationResult>;
  readonly onTrouble: (message: string) => void;
}

/** A declared schedule: fires once when it starts and then each period, without waiting for the function. */
export class Schedule {
  readonly #options: ScheduleOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  #open = 0;
  #stopped = false;

  constructor(options: ScheduleOptions) {
    this.#options = options;
  }

  start(): void {
    const { schedule, scale } = this.#options;
    this.#fire();
    this.#timers.add(setInterval(() => this.#fire(), (schedule.periodSec * 1_000) / scale));
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  #fire(): void {
    const { schedule } = this.#options;
    if (this.#open >= MAX_OPEN_EVENTS) return;
    this.#open++;
    const event = schedule.input ?? scheduledEvent(schedule.arn);
    void this.#attempt(JSON.stringify(event), 0);
  }

  async #attempt(payload: string, retries: number): Promise<void> {
    const { schedule, scale, invoke, onTrouble } = this.#options;
    const result = await invoke(payload);
    if (this.#stopped) return;
    const pause = retries < schedule.retries ? RETRY_AFTER_MS[retries] : undefined;
    if (!result.ok) onTrouble(`${schedule.functionName}: ${result.errorType}: ${result.errorMessage}`);
    if (result.ok || pause === undefined) {
      this.#open--;
      return;
    }
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      void this.#attempt(payload, retries + 1);
    }, pause / scale);
    this.#timers.add(timer);
  }
}

/** Amazon EventBridge: "Events from AWS services", the scheduled event. */
function scheduledEvent(arn: string): object {
  return {
    version: "0",
    id: randomUUID(),
    "detail-type": "Scheduled Event",
    source: "aws.events",
    account: ACCOUNT,
    time: new Date().toISOString(),
    region: REGION,
    resources: [arn],
    detail: {},
  };
}
