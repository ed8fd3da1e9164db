import { digestOf, readToken, signToken, TokenError, verifyToken } from "../../shared/policy/confirmation.ts";
import { mayDelegate } from "../../shared/policy/delegation.ts";
import { confirm } from "../confirm.ts";
import { CliError, EXIT } from "../errors.ts";
import type { Home } from "../home.ts";
import { operatorName } from "../operator.ts";
import type { Output } from "../output.ts";
import { newMessageId, type Order } from "../task.ts";
import { cleanLine } from "../text.ts";
import { delegationKey } from "./key.ts";

/** What a task outside of the deployment risks: another works on it, and has what it says. */
const RISKS = ["remote_task", "data_egress"] as const;
/** How much of a message is shown, in characters. */
const MAX_SHOWN = 200;

/** What {@link newMessageId} makes. */
const MESSAGE = /^msg_[0-9a-f]{24}$/;

/** A task that is to be confirmed before it is sent. */
interface Delegation {
  readonly home: Pick<Home, "deployment" | "agents" | "delegateTargets">;
  readonly order: Order;
  /** Where NATS is: on other servers somebody else may have the name. */
  readonly servers: readonly string[];
  readonly out: Output;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Whether a person must confirm a task before it is sent: whom it goes to is none of the deployment's agents, as this
 * folder knows them, and the operator has not said in `agents.yaml` that the command may ask them (docs/command.md).
 */
export function isSensitive(home: Delegation["home"], { to, channelRef, skill }: Order): boolean {
  if (home.agents.some((id) => to === `${home.deployment}-${id}`)) return false;
  const [ref, slug] = skill.includes("/") ? skill.split("/", 2) : [channelRef, skill];
  return !mayDelegate(home.delegateTargets ?? [], { to, channelRef: ref ?? "", skill: slug ?? "" });
}

/** `ask --plan`: shows what would be sent, and to a person its token. */
export function planDelegation(of: Delegation): void {
  const { home, order, out } = of;
  const sensitive = isSensitive(home, order);
  tell(of, sensitive);
  if (!sensitive) out.line("it needs no confirmation");
  else if (out.interactive)
    out.line(
      `confirm it within ten minutes: the same command with --confirm in place of --plan:\n--confirm ${tokenOf(of)}`,
    );
  else
    out.note("it needs a confirmation token, which is shown to a person on a terminal only; plan it there");
}

/**
 * The task as it may be sent: at once, or once and for all under the id that the token names, or after a person at the
 * terminal has said yes.
 *
 * @param token what `--plan` has shown, if it was given
 * @throws CliError `failed` when the token is refused, or the person says no; `usage` when there is neither
 */
export async function confirmed(of: Delegation, token: string | undefined): Promise<Order> {
  const { home, order, out } = of;
  if (token !== undefined) return { ...order, onceAs: confirmedBy(of, token) };
  if (!isSensitive(home, order)) return order;
  if (!out.interactive)
    throw new CliError(
      EXIT.usage,
      `token_missing: ${order.to} is outside of the deployment ${home.deployment}: plan it on a terminal, with --plan, and send it with the token that is shown there (--confirm TOKEN), or let the operator name it in agents.yaml (command.delegateTargets)`,
    );
  tell(of, true);
  if (await confirm("send it?")) return order;
  throw new CliError(EXIT.failed, "nothing is sent");
}

function tell({ home, order, out }: Delegation, sensitive: boolean): void {
  const { from, to, channelRef, skill, message } = order;
  const text = typeof message === "string" ? message : JSON.stringify(message.parts);
  const digest = digestOf(message);
  const risks = sensitive ? RISKS : [];
  out.record({ from, to, channelRef, skill, digest: `sha256:${digest}`, sensitive, risks });
  if (sensitive) out.line(`${to} is outside of the deployment ${home.deployment}; this is what is sent:`);
  for (const [name, value] of [
    ["from", from],
    ["to", `${to} (${cleanLine(channelRef)})`],
    ["skill", skill],
    ["message", `${text.length} characters, sha256:${digest}`],
    ["", cleanLine(text, MAX_SHOWN)],
    ...(sensitive ? [["risks", RISKS.join(", ")] as const] : []),
  ] as const)
    out.line(`  ${name.padEnd(8)} ${value}`);
}

/** All that is sent, and where to. */
function wholeOf({ order, servers }: Delegation): string {
  const { onceAs: _, ...sent } = order;
  return digestOf({ ...sent, servers });
}

function tokenOf(of: Delegation): string {
  const change = newMessageId();
  const confirmed = { agent: of.order.to, operator: operatorName(), change, digest: wholeOf(of) };
  return signToken(delegationKey(of.env), confirmed, Date.now());
}

/** The id under which the message that a token confirms is sent: a second one of it there cannot be. */
function confirmedBy(of: Delegation, token: string): string {
  try {
    const key = delegationKey(of.env);
    const { change } = readToken(key, token);
    if (!MESSAGE.test(change)) throw new TokenError("token_foreign", "the token is for something else");
    const task = { agent: of.order.to, operator: operatorName(), change, digest: wholeOf(of) };
    verifyToken(key, token, task, Date.now());
    return change;
  } catch (error) {
    throw error instanceof TokenError ? refused(error) : error;
  }
}

/** The token was used: its message is on the stream. */
export function usedToken(): CliError {
  return refused(new TokenError("token_used", "the task was sent already, and is not sent again"));
}

function refused(error: TokenError): CliError {
  return new CliError(EXIT.failed, `${error.code}: ${error.message}`, { cause: error });
}
