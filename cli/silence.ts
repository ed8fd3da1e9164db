import type { NatsConnection } from "@nats-io/transport-node";
import type { Output } from "./output.ts";
import { isListenedFor } from "./peers.ts";

/** An executor that works has accepted a task by then, also if its functions start cold. */
const SILENCE_MS = 3_000;

/** Looks, when nothing has come of a task for a while, whether anybody listens for it, and says so if nobody does. */
export class Silence implements Disposable {
  readonly #timer: NodeJS.Timeout;

  constructor(nc: NatsConnection, out: Output, runtime: string) {
    this.#timer = setTimeout(() => {
      // Only a remark: what cannot be looked up is no trouble of the task's.
      void tell(nc, out, runtime).catch(() => {});
    }, SILENCE_MS);
  }

  /** Something has come. */
  broken(): void {
    clearTimeout(this.#timer);
  }

  [Symbol.dispose](): void {
    this.broken();
  }
}

async function tell(nc: NatsConnection, out: Output, runtime: string): Promise<void> {
  if (await isListenedFor(nc, runtime)) return;
  out.note(
    `nobody listens for ${runtime} now; the task waits until somebody does (a new agent needs a restart of \`npm start\`)`,
  );
}
