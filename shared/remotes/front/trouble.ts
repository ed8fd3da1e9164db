import { RequestCredentialError } from "../../http/index.ts";
import { CircuitOpenError } from "../../policy/choosing/breaker.ts";
import type { CallEnd } from "../../policy/choosing/circuit.ts";
import { RemoteCredentialsError } from "../credentials.ts";
import { RemoteError, type RemoteErrorCode } from "../exchange/index.ts";
import type { Trouble } from "./told.ts";
import { words } from "./words.ts";

/** Characters of a remote's words about an error. */
const MAX_SAYS = 500;

/** What shows that an agent fails, rather than that it has refused us or our request. */
const BAD: ReadonlySet<RemoteErrorCode> = new Set(["unreachable", "lost", "timeout", "failed", "protocol"]);
/** After which nobody knows whether a message was taken: any other answer says that it was not. */
const UNSURE: ReadonlySet<RemoteErrorCode> = new Set(["lost", "timeout", "failed", "protocol", "too_large"]);
/** Whoever says so may stand before an agent that has the message; 429 turns it away (RFC 9110 §15.6.4, RFC 6585 §4). */
const UNAVAILABLE = 503;
/** What shows nothing of it: nothing was asked, or it wants to be asked later. */
const NONE: ReadonlySet<RemoteErrorCode> = new Set(["not_allowed", "overloaded"]);

/** What an error tells of the agent's circuit (docs/choosing.md). */
export function endOf(error: unknown): CallEnd {
  if (!(error instanceof RemoteError)) return "none";
  if (BAD.has(error.code)) return "bad";
  return NONE.has(error.code) ? "none" : "good";
}

/**
 * What an exchange that failed comes to.
 *
 * @param of.begun whether it came to the exchange at all; what fails before, such as the table, may go better later
 * @param of.unsure whether an earlier message is not accounted for
 * @throws what is no failure of the exchange: a mistake, or the end of the task
 */
export function troubleOf(
  error: unknown,
  of: { readonly begun: boolean; readonly unsure?: boolean; readonly now: number },
): Trouble {
  const { begun, unsure = false, now } = of;
  if (error instanceof CircuitOpenError)
    return {
      reason: error.message,
      code: "circuit_open",
      again: true,
      unsure,
      waitMs: Math.max(0, error.retryAt - now),
    };
  if (error instanceof RemoteError) {
    const { code, status, message, retryable, retryAfterMs, says } = error;
    const told = says === undefined ? "" : `: ${words(says, MAX_SAYS)}`;
    return {
      reason: `${message}${told}`,
      code,
      again: retryable,
      unsure: unsure || (error.sent && (UNSURE.has(code) || status === UNAVAILABLE)),
      ...(retryAfterMs !== undefined && { waitMs: retryAfterMs }),
    };
  }
  if (begun || !(error instanceof Error)) throw error;
  const again = !isForOperator(error);
  return { reason: error.message, code: again ? "not_begun" : "no_credentials", again, unsure };
}

/** Whether who we are there cannot be told until an operator acts. */
function isForOperator(error: Error): boolean {
  if (error instanceof RemoteCredentialsError) return !error.passing;
  return error instanceof RequestCredentialError;
}
