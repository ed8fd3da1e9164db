import type { Task } from "../../agents/types.ts";
import type { LogFields } from "../../telemetry/fields.ts";
import type { Exchange, ExchangeOptions } from "../exchange/index.ts";
import type { Terms } from "./terms.ts";

/** A task as a front sees it: what it says of itself goes along to the remote. */
export type FrontTask = Pick<Task, "id" | "skill" | "message" | "contextId" | "deadline">;

/** One remote agent as a front reaches it, for one task. */
export interface Front {
  /** What the remote is called in the operator's file. */
  readonly remote: string;
  /**
   * One exchange, through the remote's circuit.
   *
   * @param before what was told of the task until now, which what is told must go with
   * @throws RemoteError, CircuitOpenError, or what keeps it from being begun
   */
  ask<T>(what: (exchange: Exchange) => Promise<T>, before?: ExchangeOptions["before"]): Promise<T>;
  /** On what terms a skill is asked for, as card and file have them now. */
  terms(skill: string): Promise<Terms>;
  /** A warning in the function's log; never what the remote says. */
  warn(message: string, fields: LogFields): void;
  /** Milliseconds since 1970. */
  now(): number;
  /** How much faster than normal the deployment lives. */
  readonly scale: number;
}
