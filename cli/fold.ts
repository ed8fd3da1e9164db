import {
  type ArtifactRef,
  asksOperator,
  isTerminal,
  type TaskState,
  taskIdOf,
} from "../shared/wire/index.ts";
import type { Seen } from "./events.ts";

/** A task as its events tell it. */
export interface TaskView {
  /** The task's id: also that of a task that was never accepted, by which its sender knows it. */
  readonly task: string;
  readonly executor: string;
  readonly delegator: string;
  readonly state: TaskState;
  /** The highest revision seen: a control's is one more. */
  readonly revision: number;
  /** The last text: progress, a question, or the result. */
  readonly content: string;
  /** While it asks for what only the operator may approve. */
  readonly by?: "operator";
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly artifacts: readonly ArtifactRef[];
  readonly updatedAt: Date;
}

/**
 * What a task's events add up to. Only a higher revision changes the state, and nothing changes it after the end:
 * executors repeat events, and some send a late result after a cancellation (docs/wire.md, revisions).
 */
export function foldTask(seen: readonly Seen[]): TaskView | null {
  let view: TaskView | null = null;
  for (const next of seen) view = applyEvent(view, next);
  return view;
}

function applyEvent(view: TaskView | null, { event, at }: Seen): TaskView {
  const base: TaskView = view ?? {
    task: event.kind === "rejected" ? taskIdOf(event.to, event.from, event.messageId) : event.taskKey,
    executor: event.from,
    delegator: event.to,
    state: event.state,
    revision: 0,
    content: "",
    error: null,
    artifacts: [],
    updatedAt: at,
  };
  const { artifact, result } = event;
  // An artifact may come in several versions; one that is repeated is not newer for that.
  const isOld = event.revision <= base.revision && base.artifacts.some(({ id }) => id === artifact?.id);
  const artifacts = merge(base.artifacts, [
    ...(artifact && !isOld ? [artifact] : []),
    ...(result?.artifacts ?? []),
  ]);
  const ended = view !== null && isTerminal(view.state);
  if (ended || (event.revision <= base.revision && !isTerminal(event.state))) return { ...base, artifacts };
  const { by, ...rest } = base;
  // An artifact tells the task's state, but not whom it asks.
  const isAsked =
    event.kind === "artifact" ? by !== undefined && event.state === base.state : asksOperator(event);
  return {
    ...rest,
    ...(isAsked && { by: "operator" as const }),
    artifacts,
    state: event.state,
    revision: Math.max(base.revision, event.revision),
    // What was said on the way is not what came of it.
    content: event.content || (isTerminal(event.state) ? "" : base.content),
    error: event.error,
    updatedAt: at,
  };
}

function merge(known: readonly ArtifactRef[], more: readonly ArtifactRef[]): ArtifactRef[] {
  return [...new Map([...known, ...more].map((artifact) => [artifact.id, artifact])).values()];
}

/** Sorts the events of many tasks by task and folds each; the task that changed last comes last. */
export function foldTasks(seen: readonly Seen[]): TaskView[] {
  const byTask = Map.groupBy(seen, ({ event }) => `${event.from} ${event.to} ${event.taskKey}`);
  return [...byTask.values()]
    .flatMap((events) => foldTask(events) ?? [])
    .sort((a, b) => a.updatedAt.getTime() - b.updatedAt.getTime());
}
