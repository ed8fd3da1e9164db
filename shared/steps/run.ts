import type { Skill } from "../agents/define.ts";
import { ApprovalDenied, DelegationError, type FatalError, ReplyTimeout } from "../agents/errors.ts";
import type { Task } from "../agents/types.ts";
import type { EventDraft } from "../events/drafts.ts";
import type { Head } from "../tasks/items.ts";
import type { Values } from "../tasks/values.ts";
import type { ErrorCode } from "../wire/index.ts";
import type { Engine, Halt } from "./engine.ts";
import { isA, StoreError } from "./errors.ts";
import { elapsed, failure, type Run, timedOut } from "./failure.ts";
import { contentOf } from "./outcome.ts";

/** What was thrown, in words; whatever it is, this does not throw. */
function thrown(error: unknown): string {
  try {
    if (error instanceof Error) return `${String(error.name)}: ${String(error.message)}`;
    if (typeof error === "string") return `the handler threw ${error}`;
    if (error === null || error === undefined) return `the handler threw ${error}`;
    if (typeof error === "object" && "message" in error) return `the handler threw ${String(error.message)}`;
  } catch {
    return "the handler threw an error that does not say what it is";
  }
  return `the handler threw a value of type ${typeof error}`;
}

/** What an error that a handler does not catch brings (docs/tasks.md, how a handler may end). */
function uncaught(head: Head, error: unknown, now: number): Run {
  if (isA(error, ApprovalDenied)) return failure(head, "auth_not_satisfied", error.message, now);
  if (isA(error, ReplyTimeout)) return failure(head, "timeout", error.message, now);
  if (isA(error, DelegationError)) return failure(head, codeOf(error), error.message, now);
  return failure(head, "internal", thrown(error), now, metricsOf(error));
}

/** What an error says in numbers, such as a FatalError; whatever it is, this does not throw. */
function metricsOf(error: unknown): FatalError["metrics"] {
  try {
    if (!(error instanceof Error && "metrics" in error)) return undefined;
    const told = Object.entries(error.metrics ?? {});
    return Object.fromEntries(told.filter(([, value]) => Number.isFinite(value)));
  } catch {
    return undefined;
  }
}

/** An executor's refusal is not one of this task. */
function codeOf({ code, state }: DelegationError): ErrorCode {
  if (code === "timeout") return code;
  if (state !== undefined) return "internal";
  return ON_THE_WIRE.get(code) ?? "internal";
}

/** What the wire has for why a task is not handed on (docs/wire.md, error codes; docs/choosing.md, reasons). */
const ON_THE_WIRE: ReadonlyMap<string, ErrorCode> = new Map([
  ["policy_denied", "policy_denied"],
  ["hop_limit", "policy_denied"],
  ["unauthorized_target", "unauthorized_target"],
  ["target_unresolved", "unknown_agent"],
  ["target_ambiguous", "unknown_agent"],
  ["no_candidate", "unknown_agent"],
  ["unknown_skill", "unknown_skill"],
  ["circuit_open", "overloaded"],
  ["cooldown", "overloaded"],
]);

/** What a halt brings: most leave the task as it is. */
function halted(head: Head, halt: Halt, engine: Engine): Run {
  const now = engine.clock.now();
  if (halt.kind === "deadline") return timedOut(head, now);
  if (halt.kind === "threw") return failure(head, "internal", thrown(halt.error), now);
  if (halt.kind !== "stuck") return { halt };
  const seconds = Math.round((now - engine.startedAt) / 1_000);
  const message = `the handler has waited for ${seconds} s, all that an invocation gives, without a step under way; what takes long belongs into step.run`;
  return failure(head, "internal", message, now);
}

/** Runs a handler until it returns, throws, or is halted: by a cancel, a lost claim, the deadline, or for it waits. */
export async function runHandler(options: {
  skill: Skill;
  task: Task;
  head: Head;
  engine: Engine;
  values: Values;
}): Promise<Run> {
  const { skill, task, head, engine, values } = options;
  const { now } = engine.clock;
  const finished = (async (): Promise<Run> => {
    try {
      // The handler starts in a turn of its own, so that what it throws at once is caught like the rest.
      const outcome = await (async () => skill.run(task, engine.step))();
      engine.returned();
      const { content, artifacts, metrics } = await contentOf(outcome, { engine, values, task: head });
      engine.close();
      const result: EventDraft = {
        kind: "result",
        state: "TASK_STATE_COMPLETED",
        content,
        artifacts,
        metrics: { ...metrics, elapsed_ms: elapsed(head, now()) },
      };
      return { end: { state: "TASK_STATE_COMPLETED" }, events: [result] };
    } catch (error) {
      engine.close();
      if (isA(error, StoreError)) return { halt: { kind: "broken", error: error.cause } };
      return uncaught(head, error, now());
    }
  })();
  try {
    return await Promise.race([finished, engine.halted.then((halt) => halted(head, halt, engine))]);
  } finally {
    engine.close();
  }
}
