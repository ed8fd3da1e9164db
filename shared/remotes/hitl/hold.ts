import type { Step } from "../../agents/types.ts";
import { type Holding, VETO_TTL_MS } from "./mode.ts";

/** How long an approval is waited for, in milliseconds; then it is denied. */
export const APPROVAL_MS = 24 * 3_600_000;
/** How much of what is to be sent is shown to whom is asked, in characters. */
const MAX_SHOWN = 2_000;

/** What is about to be sent to a remote agent. */
export interface About extends Holding {
  /** What the remote agent is called in the operator's file. */
  readonly remote: string;
  readonly skill: string;
  /** What it is to be given, for whom is asked to read; long ones are cut. */
  readonly what: string;
  /** Which of the task's sends this is, from 1: the first is the task itself, each later one a reply. */
  readonly checkpoint?: number;
  /** How long an approval is waited for, in milliseconds; a day unless it is said. */
  readonly approvalMs?: number;
  /** How much faster than normal the deployment lives: its windows are as much shorter. */
  readonly scale?: number;
}

/**
 * Holds a task before something is sent to a remote agent, until whoever must agree has agreed (docs/hitl.md). It goes
 * by stored steps named `hold` and the checkpoint's number: what was agreed to is not asked again when the handler is
 * run again. What is passed must be stored, too, for the mode must not change between two runs.
 *
 * - `autonomous` goes ahead.
 * - `notification` tells the requester, durably, and goes ahead.
 * - `veto` asks; without an answer within the window it goes ahead.
 * - `gated` asks; only an approval lets it go ahead.
 * - `compound` asks as `gated` does, before the first send and before each later one; the others hold the first alone.
 *
 * @throws ApprovalDenied when it is denied, or a gated one is not approved in time: nothing may be sent then
 */
export async function hold(step: Step, about: About): Promise<void> {
  const { mode, checkpoint = 1 } = about;
  if (mode === "autonomous" || (checkpoint > 1 && mode !== "compound")) return;
  const name = `hold ${checkpoint}`;
  if (mode === "notification") return await notify(step, name, about);
  const { vetoTtlMs = VETO_TTL_MS, approvalMs = APPROVAL_MS, scale = 1, reviewer: by } = about;
  if (mode === "veto") {
    const options = { timeout: Math.ceil(vetoTtlMs / scale), onTimeout: "approve", by } as const;
    return await step.approve(name, promptOf(about, vetoText(vetoTtlMs, by)), options);
  }
  const who = by === "operator" ? "the operator approves" : "you approve";
  const which = mode === "compound" ? ` (checkpoint ${checkpoint})` : "";
  const options = { timeout: Math.ceil(approvalMs / scale), onTimeout: "deny", by } as const;
  await step.approve(name, promptOf(about, `It is not sent unless ${who}${which}.`), options);
}

/** A text about the progress may be lost to a newer one; one that goes with a step that is stored is not. */
async function notify(step: Step, name: string, { remote, skill, mode, radius }: About): Promise<void> {
  step.status(`${remote} is given ${JSON.stringify(skill)}${reachText(radius)}`, {
    hitl: { mode, remote, skill, ...(radius !== undefined && { radius }) },
  });
  await step.sleep(name, 0);
}

function vetoText(ms: number, by: Holding["reviewer"]): string {
  const who = by === "operator" ? "the operator denies it, or you" : "you deny it or";
  return `It is sent in ${Math.round(ms / 100) / 10} s unless ${who} cancel the task.`;
}

/** A skill's name may be the remote's own word: it is quoted. */
function promptOf({ remote, skill, radius, what }: About, rule: string): string {
  const shown = what.length > MAX_SHOWN ? `${what.slice(0, MAX_SHOWN)}…` : what;
  const asked = `${remote} is to be given ${JSON.stringify(skill)}${reachText(radius)}. ${rule}`;
  return shown === "" ? asked : `${asked}\n\n${shown.toWellFormed()}`;
}

function reachText(radius: Holding["radius"]): string {
  return radius === undefined ? "" : `, which reaches as far as: ${radius}`;
}
