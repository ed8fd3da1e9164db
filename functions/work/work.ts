import type { AgentSource } from "../../shared/agents/define.ts";
import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import type { Timing } from "../../shared/config/timing.ts";
import type { TellRemote } from "../../shared/events/farewell.ts";
import { ClaimLost, TaskEnded } from "../../shared/events/journal.ts";
import type { Messenger } from "../../shared/events/messenger.ts";
import type { Publisher } from "../../shared/events/publisher.ts";
import type { Policies } from "../../shared/policy/runtime-policy.ts";
import type { Delegating, Halt } from "../../shared/steps/engine.ts";
import type { Settling } from "../../shared/steps/lot.ts";
import type { Clock } from "../../shared/tasks/clock.ts";
import type { WorkHint } from "../../shared/tasks/messages.ts";
import type { Paused } from "../../shared/tasks/pauses.ts";
import type { Store } from "../../shared/tasks/store.ts";
import type { Values } from "../../shared/tasks/values.ts";
import type { Telemetry } from "../../shared/telemetry/index.ts";
import { Claim, takeOver } from "./claim.ts";
import { finish } from "./finish.ts";
import { publishEnd } from "./leave.ts";
import { isHeldBack } from "./pause.ts";
import type { runTask } from "./run.ts";
import { claimTask } from "./slot.ts";

/** What `work` needs besides the hint. */
export interface WorkDeps {
  readonly store: Store;
  readonly values: Values;
  readonly publisher: Publisher;
  /** For tasks that are handed on. */
  readonly messenger: Messenger;
  readonly deployment: DeploymentConfig;
  readonly agents: readonly AgentSource[];
  readonly telemetry: Telemetry;
  readonly timing: Timing;
  readonly clock: Clock;
  /** Loads what runs a task, while the table is asked for it: a start need not wait for that. */
  readonly runner: () => Promise<typeof runTask>;
  /** The sandbox's own. */
  readonly pauses: Paused;
  readonly policies: Policies;
  /** Where remote agents are worked for. */
  readonly tellRemote?: TellRemote | undefined;
  /** Chooses who gets what is handed on. */
  readonly choosing: Delegating["choosing"];
  /** How an engine waits until it looks whether its handler still does something; for simulations. */
  readonly settling?: Settling;
  /** Puts a hint on its agent's queue, to arrive after so many seconds. */
  readonly hint: (hint: WorkHint, delaySeconds?: number) => Promise<void>;
  /** Calls back when somebody says that a task's journal has news; answers with how to stop listening. */
  readonly listen: (taskId: string, told: () => void) => Promise<() => void>;
}

/**
 * Takes up the task that a hint speaks of, if nobody else has since, and works on it until it ends, waits, is taken
 * away, or the invocation's time is nearly over.
 *
 * @param invocation.endsAt when Lambda ends this invocation, in milliseconds since 1970
 * @throws when the table or the bucket cannot be reached; another worker will go on
 */
export async function work(deps: WorkDeps, hint: WorkHint, invocation: { endsAt: number }): Promise<void> {
  if (hint.to !== undefined && isElsewhere(deps, hint.to)) return deps.hint(hint);
  if (hint.over === true) return finish(deps, hint);
  if (await isHeldBack(deps, hint)) return;
  const [head, runTask] = await Promise.all([claimTask(deps, hint), deps.runner()]);
  if (head === undefined) {
    deps.telemetry.debug("the hint is stale, or the task waits for a slot", { ...hint });
    return;
  }
  const claim = new Claim(deps, head, invocation.endsAt - deps.timing.marginMs);
  try {
    const run = await runTask(claim, await takeOver(claim));
    if ("halt" in run) await leave(claim, run.halt);
  } catch (error) {
    if (error instanceof TaskEnded) await publishEnd(claim, error.end);
    else if (!(error instanceof ClaimLost)) throw error;
  }
}

/**
 * Whether an agent is worked for by another function than this one. Its hints come here if they were sent before it got
 * a work function of its own.
 */
function isElsewhere(
  { deployment, agents }: Pick<WorkDeps, "deployment" | "agents">,
  runtime: string,
): boolean {
  const hosted = deployment.agents.find((of) => of.runtime === runtime);
  return hosted !== undefined && !agents.some(({ id }) => id === hosted.id);
}

/** Leaves a task that goes on elsewhere, later, or nowhere. One that waits is left already. */
async function leave(claim: Claim, halt: Halt): Promise<void> {
  claim.deps.telemetry.info("a task is left", { ...claim.fields(), why: halt.kind });
  if (halt.kind !== "suspended") await claim.outlet.drain();
  if (halt.kind === "broken") throw halt.error;
}
