import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import type { Timing } from "../../shared/config/timing.ts";
import type { Messenger } from "../../shared/events/messenger.ts";
import type { Delivery, Verdict } from "../../shared/nats/delivery.ts";
import type { WorkHint } from "../../shared/tasks/messages.ts";
import type { Store } from "../../shared/tasks/store.ts";
import type { Values } from "../../shared/tasks/values.ts";
import type { Telemetry } from "../../shared/telemetry/index.ts";

/** What `events` needs besides the message. */
export interface EventsDeps {
  readonly store: Store;
  readonly values: Values;
  readonly messenger: Messenger;
  readonly deployment: DeploymentConfig;
  readonly telemetry: Telemetry;
  readonly timing: Timing;
  readonly now: () => number;
  /** Tells a running worker that its journal has news; a worker that is not told finds out by itself. */
  readonly tell: (taskId: string) => Promise<void>;
  /** Puts a hint on the queue `work`. */
  readonly hint: (hint: WorkHint) => Promise<void>;
}

/**
 * Takes an event of a task that one of our agents has handed on into that agent's own task (docs/tasks.md,
 * delegation).
 *
 * @throws when the table, the bucket, the queue or NATS cannot be reached
 */
export async function events(_deps: EventsDeps, message: Delivery): Promise<Verdict> {
  if (message.body === null) return { ack: true };
  return { term: "no such delegation" };
}
