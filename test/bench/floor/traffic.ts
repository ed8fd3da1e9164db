import { subscribe, unsubscribe } from "node:diagnostics_channel";
import * as z from "zod";

const CHANNEL = "http.server.request.start";
const request = z.object({ request: z.object({ headers: z.object({ "x-amz-target": z.string() }) }) });

/** Counts what the stand-in of SQS is asked for, which runs in this process; the host's own requests included. */
export class QueueTraffic {
  #counts: Record<string, number> = {};
  readonly #note = (message: unknown) => {
    const read = request.safeParse(message);
    const [service, operation = ""] = read.data?.request.headers["x-amz-target"].split(".") ?? [];
    if (service === "AmazonSQS") this.#counts[operation] = (this.#counts[operation] ?? 0) + 1;
  };

  constructor() {
    subscribe(CHANNEL, this.#note);
  }

  /** The requests since the last call, by operation. */
  take(): Readonly<Record<string, number>> {
    const counts = this.#counts;
    this.#counts = {};
    return counts;
  }

  stop(): void {
    unsubscribe(CHANNEL, this.#note);
  }
}
