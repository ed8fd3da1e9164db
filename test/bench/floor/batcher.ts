/** How long messages wait for others to share their request, as in the product (functions/bridge/lane.ts, wiring.ts). */
export const BRIDGE_LINGER_MS = 2;
export const HINT_LINGER_MS = 3;
const MAX_BATCH = 10;

/** Sends messages together that come within a time. */
export class Batcher {
  readonly #lingerMs: number;
  readonly #send: (bodies: readonly string[]) => Promise<void>;
  #waiting: string[] = [];
  #sent = Promise.withResolvers<void>();

  constructor(lingerMs: number, send: (bodies: readonly string[]) => Promise<void>) {
    this.#lingerMs = lingerMs;
    this.#send = send;
  }

  /** Resolves when the message is sent. */
  add(body: string): Promise<void> {
    const { promise } = this.#sent;
    const { length } = this.#waiting;
    if (length === 0) setTimeout(this.#flush, this.#lingerMs, this.#sent);
    if (this.#waiting.push(body) === MAX_BATCH) this.#flush(this.#sent);
    return promise;
  }

  readonly #flush = (sent: PromiseWithResolvers<void>): void => {
    // Sent already, being full.
    if (sent !== this.#sent) return;
    const bodies = this.#waiting;
    this.#waiting = [];
    this.#sent = Promise.withResolvers<void>();
    this.#send(bodies).then(sent.resolve, sent.reject);
  };
}
