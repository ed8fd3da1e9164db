/** An error that no retry can mend: the step, and with it the task unless it is caught, ends as failed. */
export class FatalError extends Error {
  override readonly name = "FatalError";
}

/** Nobody answered in time. Uncaught it ends the task as failed with the code `timeout`. */
export class ReplyTimeout extends Error {
  override readonly name = "ReplyTimeout";
}

/** The requester denied its approval. Uncaught it ends the task as failed with the code `auth_not_satisfied`. */
export class ApprovalDenied extends Error {
  override readonly name = "ApprovalDenied";
}
