import type { TellRemote } from "../shared/events/farewell.ts";
import type { Fate, Write } from "./process.ts";

/** A line that the functions, or a handler's `step.log`, wrote. */
export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** What may go wrong around the functions; nothing does unless it is said here. */
export interface Trouble {
  /** Called at each write of a process: whether it dies there. */
  readonly fate?: (write: Write) => Fate;
  /** By how many milliseconds the clocks of a function are wrong. */
  readonly skewMs?: Readonly<Partial<Record<Write["by"], number>>>;
  /** How much later than asked for each copy of a message on the queue `work` arrives, in milliseconds. */
  readonly copies?: () => readonly number[];
  /** The agent is a remote one, which a work function tells like this that a task is over. */
  readonly tellRemote?: TellRemote;
}

/** An agent beside the one under test, by its id. */
export type Neighbour = string | { readonly id: string; readonly skills: readonly string[] };

/** What is simulated; everything has a default. */
export interface SimulationOptions extends Trouble {
  /** The agent's settings, as the operator would write them in `agents.yaml`. */
  readonly settings?: unknown;
  /** Fields of the agent's policy in `agents.yaml`. A task has a year unless its `timeoutSec` says otherwise. */
  readonly policy?: object;
  /** The deployment's name, `test` unless it is said: the agent's runtime is `<deployment>-<id>`. */
  readonly deployment?: string;
  /**
   * Other agents of the deployment, whose runtimes are `<deployment>-<id>`; they are there to be delegated to. Each has the
   * skill `task` unless others are said.
   */
  readonly neighbours?: readonly Neighbour[];
  /** The section `choosing` of `agents.yaml`. */
  readonly choosing?: unknown;
  /** What the clock shows first. */
  readonly startsAt?: Date;
  /** How long a handler may take in real time without getting anywhere, in milliseconds; ten seconds unless said. */
  readonly patienceMs?: number;
}

/** What somebody asks of the agent. */
export interface Request {
  readonly skill: string;
  readonly a2a: unknown;
  readonly from: string;
  readonly timeoutSec?: number;
  /** How many times the work may be handed on; once, unless it is said. */
  readonly depth?: number;
  readonly clientTaskRef?: string;
  readonly contextId?: string;
}
