import { randomUUID } from "node:crypto";
import { type Artifact, type Message, type Part, Role, type Task, TaskState } from "@a2a-js/sdk";
import {
  AgentEvent,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from "@a2a-js/sdk/server";
import { cut, type Line, readScript } from "./script.ts";

/** A message that the agent has worked on: each entry is one execution, so that a second one of the same shows. */
export interface Execution {
  readonly messageId: string;
  readonly taskId: string;
  readonly contextId: string;
  readonly text: string;
  readonly message: Message;
  /** The message's metadata, and the request's. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly requestMetadata: Readonly<Record<string, unknown>>;
  /** The URIs of the extensions that the client has named, as far as the card has them. */
  readonly extensions: readonly string[];
}

type Content = NonNullable<Part["content"]>;
const part = (content: Content, mediaType = "", metadata?: Record<string, unknown>): Part => ({
  content,
  metadata,
  filename: "",
  mediaType,
});
const textPart = (value: string) => part({ $case: "text", value });

const ENDS: Readonly<Record<string, TaskState>> = {
  complete: TaskState.TASK_STATE_COMPLETED,
  fail: TaskState.TASK_STATE_FAILED,
  reject: TaskState.TASK_STATE_REJECTED,
  cancel: TaskState.TASK_STATE_CANCELED,
};
const ASKS: Readonly<Record<string, TaskState>> = {
  ask: TaskState.TASK_STATE_INPUT_REQUIRED,
  auth: TaskState.TASK_STATE_AUTH_REQUIRED,
};

/** An agent that does what its messages say (script.ts), and notes down what it was told. */
export class ScriptedExecutor implements AgentExecutor {
  readonly executions: Execution[] = [];
  /** The ids of the tasks that it was told to cancel. */
  readonly canceled: string[] = [];
  /** What each skill does whatever the message says; the others do what it says. */
  readonly #skills: Readonly<Record<string, string>>;
  /** What a task that asks goes on with. */
  readonly #goesOn = new Map<string, readonly Line[]>();
  readonly #stops = new Map<string, AbortController>();
  readonly #gates = new Map<string, PromiseWithResolvers<void>>();

  constructor(skills: Readonly<Record<string, string>> = {}) {
    this.#skills = skills;
  }

  /** Lets whoever holds, or will hold, for this name go on. */
  release(name: string): void {
    this.#gate(name).resolve();
  }

  async execute(context: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const execution = executionOf(context);
    this.executions.push(execution);
    const { taskId, contextId, text, metadata } = execution;
    const lines = this.#goesOn.get(taskId) ?? readScript(this.#skills[String(metadata.skillHint)] ?? text);
    this.#goesOn.delete(taskId);
    const [first] = lines;
    if (first?.verb === "message")
      return bus.publish(AgentEvent.message(says({ taskId: "", contextId }, first.rest)));
    const stop = new AbortController();
    this.#stops.set(taskId, stop);
    bus.publish(AgentEvent.task(begun(context)));
    for (const [at, line] of lines.entries()) {
      const told = { ...line, rest: line.rest.replaceAll("{reply}", text) };
      await this.#wait(told, stop.signal);
      if (stop.signal.aborted) return;
      publish(bus, { taskId, contextId }, told);
      if (line.verb in ASKS) this.#goesOn.set(taskId, lines.slice(at + 1));
      if (line.verb in ASKS || line.verb in ENDS) return;
    }
  }

  async cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    this.canceled.push(taskId);
    this.#stops.get(taskId)?.abort();
    const contextId = this.executions.find((of) => of.taskId === taskId)?.contextId ?? "";
    publish(bus, { taskId, contextId }, { verb: "cancel", rest: "canceled as asked" });
    bus.finished();
  }

  async #wait({ verb, rest }: Line, signal: AbortSignal): Promise<void> {
    const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    if (verb === "never") return stopped;
    if (verb === "hold") return Promise.race([stopped, this.#gate(rest).promise]);
    if (verb === "pause") {
      const late = new Promise<void>((resolve) => setTimeout(resolve, Number(rest)).unref());
      return Promise.race([stopped, late]);
    }
  }

  #gate(name: string): PromiseWithResolvers<void> {
    const gate = this.#gates.get(name) ?? Promise.withResolvers<void>();
    this.#gates.set(name, gate);
    return gate;
  }
}

interface Ids {
  readonly taskId: string;
  readonly contextId: string;
}

function executionOf({ request, userMessage, taskId, contextId, context }: RequestContext): Execution {
  return {
    messageId: userMessage.messageId,
    taskId,
    contextId,
    text: userMessage.parts
      .flatMap(({ content }) => (content?.$case === "text" ? [content.value] : []))
      .join("\n"),
    message: userMessage,
    metadata: userMessage.metadata ?? {},
    requestMetadata: request.metadata ?? {},
    extensions: [...(context.requestedExtensions ?? [])],
  };
}

/** The first event of each execution has to be a task. */
function begun({ task, taskId, contextId, userMessage }: RequestContext): Task {
  const state = task === undefined ? TaskState.TASK_STATE_SUBMITTED : TaskState.TASK_STATE_WORKING;
  const status = { state, message: undefined, timestamp: new Date().toISOString() };
  if (task !== undefined) return { ...task, status };
  return { id: taskId, contextId, status, artifacts: [], history: [userMessage], metadata: undefined };
}

function says({ taskId, contextId }: Ids, text: string): Message {
  return {
    messageId: randomUUID(),
    taskId,
    contextId,
    role: Role.ROLE_AGENT,
    parts: [textPart(text)],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

function publish(bus: ExecutionEventBus, ids: Ids, { verb, rest }: Line): void {
  const state = verb === "working" ? TaskState.TASK_STATE_WORKING : (ENDS[verb] ?? ASKS[verb]);
  if (state !== undefined) {
    const message = rest === "" ? undefined : says(ids, rest);
    const status = { state, message, timestamp: new Date().toISOString() };
    bus.publish(AgentEvent.statusUpdate({ ...ids, status, metadata: undefined }));
  }
  const made = artifactOf(verb, rest);
  if (made !== undefined) bus.publish(AgentEvent.artifactUpdate({ ...ids, ...made, metadata: undefined }));
}

interface Made {
  readonly artifact: Artifact;
  readonly append: boolean;
  readonly lastChunk: boolean;
}

function artifactOf(verb: Line["verb"], text: string): Made | undefined {
  const [name, rest] = cut(text);
  const whole = (of: Part): Made => ({ artifact: artifact(name, of), append: false, lastChunk: true });
  switch (verb) {
    case "artifact":
      return whole(textPart(rest));
    case "data":
      return whole(part({ $case: "data", value: JSON.parse(rest) }));
    case "link":
      return whole(part({ $case: "url", value: rest }));
    case "file": {
      const [mediaType, bytes] = cut(rest);
      return whole(part({ $case: "raw", value: Buffer.from(bytes) }, mediaType));
    }
    case "chunk":
    case "last":
      return { artifact: artifact(name, textPart(rest)), append: true, lastChunk: verb === "last" };
    case "observe":
      return { artifact: observed(name, rest), append: false, lastChunk: name !== "tool-call" };
    default:
      return undefined;
  }
}

function artifact(name: string, of: Part): Artifact {
  return { artifactId: name, name, description: "", parts: [of], metadata: undefined, extensions: [] };
}

function observed(kind: string, json: string): Artifact {
  const metadata = { mimeType: `application/vnd.protolabs.${kind}-v1+json` };
  return artifact(kind, part({ $case: "data", value: JSON.parse(json) }, "application/json", metadata));
}
