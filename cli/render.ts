import {
  type ArtifactRef,
  asksOperator,
  isTerminal,
  type TaskEvent,
  type TaskState,
} from "../shared/wire/index.ts";
import type { TaskView } from "./fold.ts";
import { withPlace } from "./repeat.ts";
import { type Colours, clean, cleanLine, sizeText } from "./text.ts";

/** Of what stands before an event's text: as wide as most states. */
const LABEL_WIDTH = 9;

/** `TASK_STATE_INPUT_REQUIRED` as people read it: `input required`. */
export function stateName(state: TaskState): string {
  return state.slice("TASK_STATE_".length).toLowerCase().replaceAll("_", " ");
}

/** A state before a text: a longer one than the column has two spaces after it all the same. */
function labelOf(state: TaskState, c: Colours, width = LABEL_WIDTH): string {
  return `${stateText(state, c, width)}  `;
}

/** How wide what stands before the texts of some events is. */
export function labelWidth(events: readonly Pick<TaskEvent, "kind" | "state">[]): number {
  return Math.max(
    LABEL_WIDTH,
    ...events.map(({ kind, state }) => (isNamedByKind(kind) ? kind : stateName(state)).length),
  );
}

function isNamedByKind(kind: TaskEvent["kind"]): boolean {
  return kind === "accepted" || kind === "artifact";
}

/** A state in its colour: green when done, red when it went wrong, yellow when somebody must act. */
export function stateText(state: TaskState, c: Colours, width = 0): string {
  const name = stateName(state).padEnd(width);
  if (state === "TASK_STATE_COMPLETED") return c.green(name);
  if (isTerminal(state)) return c.red(name);
  return state === "TASK_STATE_WORKING" ? c.cyan(name) : c.yellow(name);
}

/** An artifact on one line: name, media type, size and digest. */
export function artifactText(artifact: ArtifactRef): string {
  const { name, mediaType, sizeBytes, digest } = artifact;
  return [name, mediaType, sizeText(sizeBytes), digest].map((part) => cleanLine(part)).join("  ");
}

/** How to read a task's artifacts. */
export function artifactHint(task: string, count: number): string {
  const command = withPlace(`./sluice artifact ${cleanLine(task)}${count === 1 ? "" : " NAME"}`);
  return `read ${count === 1 ? "it" : "one"} with ${command}`;
}

/**
 * An event on one line: what happened, and its text or artifact.
 *
 * @param width of the column of what happened, where several events stand below each other
 */
export function eventLine(event: TaskEvent, c: Colours, width = LABEL_WIDTH): string {
  const text = [errorOf(event), cleanLine(event.content)];
  switch (event.kind) {
    case "accepted":
      return `${c.cyan("accepted".padEnd(width))}  ${cleanLine(event.taskKey)}`;
    case "artifact":
      return `${c.magenta("artifact".padEnd(width))}  ${event.artifact ? artifactText(event.artifact) : ""}`.trimEnd();
    default:
      return `${labelOf(event.state, c, width)}${text.filter((part) => part !== "").join("  ")}`.trimEnd();
  }
}

/** A question: on one line if it is one, otherwise with its whole text on lines of its own. */
export function questionText(event: TaskEvent, c: Colours): string {
  const text = clean(event.content).trim();
  return text === cleanLine(event.content) ? eventLine(event, c) : `${stateText(event.state, c)}\n${text}`;
}

/**
 * Who must answer what a task asks, and how; empty when it asks nothing.
 *
 * @param byOperator whether the operator must, where it is known from elsewhere than the event's data
 */
export function waitText(
  asks: Pick<TaskEvent, "state" | "taskKey" | "to" | "data">,
  byOperator = asksOperator(asks),
): string {
  const { state, taskKey, to } = asks;
  const [task, who] = [cleanLine(taskKey), cleanLine(to)];
  if (state === "TASK_STATE_INPUT_REQUIRED")
    return `${who} must answer: ${withPlace(`./sluice reply ${task} TEXT`)}`;
  if (state === "TASK_STATE_AUTH_REQUIRED" && byOperator)
    return `the operator must decide: ${withPlace(`./sluice approve ${task}`)}, or add --deny REASON`;
  if (state === "TASK_STATE_AUTH_REQUIRED")
    return `${who} must decide: ${withPlace(`./sluice authorize ${task}`)}, or add --deny REASON`;
  return "";
}

/** The same of a task as its events tell it. */
export function viewWaitText({ state, task, delegator, by }: TaskView): string {
  return waitText({ state, taskKey: task, to: delegator }, by === "operator");
}

/** An error on one line. Many executors repeat the code in the message; it is shown once. */
export function errorText({ code, message }: { readonly code: string; readonly message: string }): string {
  const detail = message.startsWith(`${code}: `) ? message.slice(code.length + 2) : message;
  // What erasing leaves of a message is its code.
  if (detail === code) return oneLine(code);
  // A class that says no more than that the task has failed, which is known.
  return oneLine(code, detail.replace(/^FatalError: /, ""));
}

/** What went wrong with a task, beside its state: a code that is the state's name is not repeated. */
function errorOf({ state, error }: Pick<TaskEvent, "state" | "error">): string {
  if (error === null) return "";
  const text = errorText(error);
  return error.code === stateName(state) ? text.slice(error.code.length).replace(/^: /, "") : text;
}

function oneLine(...parts: readonly string[]): string {
  return parts
    .map((part) => cleanLine(part, 1_000))
    .filter((part) => part !== "")
    .join(": ");
}

/** The end of a task: its state, what went wrong, and then its whole text on lines of its own. */
export function endText(event: TaskEvent, c: Colours): string {
  const head = `${labelOf(event.state, c)}${errorOf(event)}`;
  const text = clean(event.content).trimEnd();
  return [head.trimEnd(), ...(text === "" ? [] : [text])].join("\n");
}
