import type { Agent } from "../shared/agents/index.ts";
import { Crashes } from "./crashes.ts";
import type { SimulationOptions, Trouble } from "./options.ts";
import { Simulation } from "./simulation.ts";
import { TestTask } from "./task.ts";

/** What the authors of agents test with: `import { startTask } from "sluice/testing"` (see docs/testing.md). */
export type { CrashPoint } from "./crashes.ts";
export type { Completion, Delegation } from "./delegation.ts";
export type { LogLine } from "./options.ts";
export type { Question, ReceivedArtifact, StepRecord, TaskOutcome, TestTask, WaitingStep } from "./task.ts";

/** What is asked of the agent, and under which conditions. */
export interface StartOptions extends Omit<SimulationOptions, keyof Trouble> {
  /** The skill's slug; `task`, or the only one, unless said otherwise. */
  readonly skill?: string;
  /** The message as a text. */
  readonly text?: string;
  /** The message as one data part. */
  readonly data?: unknown;
  /** The whole message in any form that peers send. */
  readonly message?: unknown;
  /** The runtime that asks. */
  readonly from?: string;
  /** How long the task may take, in seconds; a year unless said otherwise. */
  readonly timeoutSec?: number;
  /** How many times the work may be handed on; once, unless it is said. */
  readonly depth?: number;
  readonly clientTaskRef?: string;
  readonly contextId?: string;
}

/**
 * Gives an agent a task, in a deployment of its own: the real engine over a store in memory, with a clock that moves
 * only when the test waits for something. The task is accepted, or rejected, when this resolves; nothing has been done
 * yet.
 */
export async function startTask(agent: Agent, options: StartOptions = {}): Promise<TestTask> {
  const {
    skill = skillOf(agent),
    from = "local-cli",
    timeoutSec,
    depth,
    clientTaskRef,
    contextId,
    ...rest
  } = options;
  const crashes = new Crashes();
  const simulation = new Simulation(agent, { ...rest, fate: (write) => crashes.fate(write) });
  const { taskId } = await simulation.admit({
    skill,
    a2a: messageOf(options),
    from,
    ...(timeoutSec !== undefined && { timeoutSec }),
    ...(depth !== undefined && { depth }),
    ...(clientTaskRef !== undefined && { clientTaskRef }),
    ...(contextId !== undefined && { contextId }),
  });
  return new TestTask({ id: taskId, from, simulation, crashes });
}

function skillOf({ skills }: Agent): string {
  const [first = "task"] = Object.keys(skills);
  return "task" in skills ? "task" : first;
}

function messageOf({ text, data, message }: StartOptions): unknown {
  if (message !== undefined) return message;
  if (data !== undefined) return { parts: [{ data }] };
  return text ?? "";
}
