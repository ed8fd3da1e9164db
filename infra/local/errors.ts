/** What stops the local host: `code` is stable, the message says what happened, where, and what to do. */
export class HostError extends Error {
  readonly code: HostErrorCode;

  constructor(code: HostErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "HostError";
    this.code = code;
  }
}

export type HostErrorCode =
  | "assembly_invalid"
  | "data_folder_in_use"
  | "data_folder_unusable"
  | "nats_not_found"
  | "nats_unreachable"
  | "part_failed"
  | "port_taken"
  | "table_differs"
  | "unsupported";

/** The text of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
