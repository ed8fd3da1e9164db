/** What can go wrong between a function and NATS, by a stable code. */
export type NatsErrorCode =
  | "nats_unreachable"
  | "nats_refused"
  | "nats_credentials"
  | "nats_lost"
  | "nats_jetstream";

/** NATS could not be used; the message says which server, what happened and what to do. */
export class NatsError extends Error {
  override readonly name = "NatsError";
  readonly code: NatsErrorCode;

  constructor(code: NatsErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
