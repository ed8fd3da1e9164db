/** An error that no retry can mend: the task ends as failed, with this message. */
export class FatalError extends Error {
  override readonly name = "FatalError";
}
