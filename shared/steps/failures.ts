import { ApprovalDenied, DelegationError, FatalError, ReplyTimeout } from "../agents/errors.ts";
import { errorMessage } from "../events/drafts.ts";
import type { StoredStep } from "../tasks/items.ts";
import {
  ArtifactError,
  isA,
  NotJsonError,
  StepClosedError,
  StepNameError,
  StepNestedError,
  StepOptionError,
  StepTimeout,
} from "./errors.ts";

export type StoredError = NonNullable<StoredStep["error"]>;

/** The longest name of an error that is stored, in characters. */
const MAX_ERROR_NAME = 100;

/** What a handler may want to tell apart stays what it is when it is thrown again. */
const KINDS = { FatalError, ReplyTimeout, ApprovalDenied, TimeoutError: StepTimeout };

/** Mistakes of a handler's author: no retry mends them. */
const MISTAKES = [
  ArtifactError,
  NotJsonError,
  StepClosedError,
  StepNameError,
  StepNestedError,
  StepOptionError,
];

/** Whether trying again is of no use. */
export function isFinal(error: unknown): boolean {
  return isA(error, FatalError) || MISTAKES.some((kind) => isA<Error>(error, kind));
}

/** What is stored of an error, whatever was thrown; this does not throw. */
export function describeError(error: unknown): StoredError {
  try {
    if (error instanceof Error)
      return {
        name: String(error.name).slice(0, MAX_ERROR_NAME).toWellFormed(),
        message: errorMessage(String(error.message)),
        ...(error instanceof DelegationError && { code: error.code }),
      };
    return { name: "Error", message: `${typeof error === "string" ? errorMessage(error) : typeof error}` };
  } catch {
    return { name: "Error", message: "an error that does not say what it is" };
  }
}

/** The error that is thrown for a stored one: the same on each run, and so also on the first. */
export function reviveError({ name, message, code }: StoredError): Error {
  if (name === "DelegationError") return new DelegationError(message, { code: code ?? "internal" });
  for (const [known, Kind] of Object.entries(KINDS)) if (known === name) return new Kind(message);
  const error = new Error(message);
  Object.defineProperty(error, "name", { value: name, configurable: true, writable: true });
  return error;
}
