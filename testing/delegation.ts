import { createHash } from "node:crypto";
import { textOf } from "../shared/steps/input.ts";
import type { Child } from "../shared/tasks/items.ts";
import {
  type ArtifactRef,
  acceptedEvent,
  artifactEvent,
  artifactRef,
  type ErrorCode,
  type Message,
  type Outgoing,
  parseSubject,
  readMessage,
  readTaskPayload,
  rejectedEvent,
  resultEvent,
  statusEvent,
  type TaskRef,
  type TaskState,
  taskIdOf,
} from "../shared/wire/index.ts";
import type { Simulation } from "./simulation.ts";

/** What the other agent gives in the end. */
export interface Completion {
  readonly text?: string;
  /** Instead of a text. */
  readonly data?: unknown;
  /** Texts by their names, given out before. */
  readonly artifacts?: Readonly<Record<string, string>>;
}

/** A task that the agent under test has handed on, from the other agent's side. Made by `TestTask.delegation`. */
export class Delegation {
  /** The step that has delegated. */
  readonly step: string;
  /** The runtime that it went to. */
  readonly to: string;
  readonly channelRef: string;
  /** The skill's slug. */
  readonly skill: string;
  readonly message: Message;
  /** The texts of the message. */
  readonly text: string;
  /** How long the other agent may take. */
  readonly timeoutSec: number;
  /** How many times it may hand the work on. */
  readonly depth: number;
  /** The task's id at the other agent. */
  readonly taskId: string;
  readonly #simulation: Simulation;
  readonly #task: TaskRef;
  readonly #artifacts: ArtifactRef[] = [];
  #revision = 0;

  constructor(options: { simulation: Simulation; step: string; child: Child; sent: Outgoing }) {
    const { simulation, step, child, sent } = options;
    this.#simulation = simulation;
    this.step = step;
    this.to = child.to;
    this.channelRef = child.channelRef;
    this.skill = child.skill;
    this.timeoutSec = child.timeoutSec;
    this.depth = child.depth;
    this.message = messageIn(sent);
    this.text = textOf(this.message);
    const from = simulation.runtime;
    this.taskId = taskIdOf(from, child.to, child.messageId);
    this.#task = { taskId: this.taskId, messageId: child.messageId, from, to: child.to };
  }

  /** Whether the other agent was told to stop. */
  get cancelled(): boolean {
    return this.#simulation.messenger.sent.some(({ subject }) => {
      const parsed = parseSubject(subject);
      return parsed?.kind === "control" && parsed.control === "cancel" && parsed.taskId === this.taskId;
    });
  }

  /** Accepts the task; what follows does so, too, if it is not accepted yet. */
  async accept(): Promise<void> {
    if (this.#revision > 0) return;
    this.#revision = 1;
    await this.#send(acceptedEvent(this.#task, this.#simulation.createdAt()));
  }

  /** Refuses to take the task. */
  async reject(code: ErrorCode, message: string): Promise<void> {
    await this.#send(rejectedEvent(this.#task, { code, message }, this.#simulation.createdAt()));
  }

  /** Tells how far the work is. */
  async status(text: string): Promise<void> {
    await this.#state("TASK_STATE_WORKING", text);
  }

  /** Asks what the agent under test cannot answer. */
  async ask(prompt: string): Promise<void> {
    await this.#state("TASK_STATE_INPUT_REQUIRED", prompt);
  }

  /** Gives out a text as an artifact. */
  async artifact(name: string, text: string): Promise<void> {
    await this.accept();
    const bytes = Buffer.from(text);
    const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    const id = `artifact-${this.#artifacts.length + 1}`;
    const described = { id, name, mediaType: "text/plain", digest, sizeBytes: bytes.byteLength };
    const artifact = artifactRef(this.taskId, described);
    this.#simulation.messenger.objects.set(artifact.key, bytes);
    this.#artifacts.push(artifact);
    const of = { artifact, revision: ++this.#revision };
    await this.#send(artifactEvent(this.#task, of, this.#simulation.createdAt()));
  }

  /** Ends the task well, with a text or more. */
  async complete(of: string | Completion = ""): Promise<void> {
    await this.accept();
    const { text, data, artifacts = {} }: Completion = typeof of === "string" ? { text: of } : of;
    for (const [name, content] of Object.entries(artifacts)) await this.artifact(name, content);
    const content = text ?? (data === undefined ? "" : JSON.stringify(data));
    await this.#end({ state: "TASK_STATE_COMPLETED", content });
  }

  /** Ends the task as failed. */
  async fail(code: ErrorCode, message: string): Promise<void> {
    await this.accept();
    await this.#end({ state: "TASK_STATE_FAILED", error: { code, message } });
  }

  /** Ends the task as cancelled, as an agent does that is told to stop. */
  async cancel(): Promise<void> {
    await this.accept();
    const error = { code: "canceled" as const, message: "canceled" };
    await this.#end({ state: "TASK_STATE_CANCELED", error });
  }

  async #state(state: TaskState, content: string): Promise<void> {
    await this.accept();
    const of = { state, content, revision: ++this.#revision };
    await this.#send(statusEvent(this.#task, of, this.#simulation.createdAt()));
  }

  async #end(of: {
    state: TaskState;
    content?: string;
    error?: { code: ErrorCode; message: string };
  }): Promise<void> {
    const result = { ...of, artifacts: this.#artifacts, metrics: {}, revision: ++this.#revision };
    await this.#send(resultEvent(this.#task, result, this.#simulation.createdAt()));
  }

  async #send(event: { readonly subject: string; readonly body: string }): Promise<void> {
    const verdict = await this.#simulation.event(event);
    if ("term" in verdict) throw new Error(`the event of step ${JSON.stringify(this.step)}: ${verdict.term}`);
    await this.#simulation.advance(0);
  }
}

function messageIn({ body }: Outgoing): Message {
  const envelope: unknown = JSON.parse(body);
  const payload =
    typeof envelope === "object" && envelope !== null && "payload" in envelope && envelope.payload;
  const read = readTaskPayload(payload);
  if (!read.ok) throw new Error(`a delegated task: ${read.reason}`);
  return readMessage(read.value.a2a);
}
