import { createHash } from "node:crypto";
import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { publishOnStream, putObject } from "../../shared/nats/index.ts";
import {
  type ArtifactRef,
  acceptedEvent,
  artifactEvent,
  artifactRef,
  type Control,
  type ErrorCode,
  readControl,
  readEnvelope,
  readTaskPayload,
  rejectedEvent,
  resultEvent,
  statusEvent,
  type TaskRef,
  type TaskRequest,
  type TaskState,
  taskIdOf,
  type WireEvent,
} from "../../shared/wire/index.ts";
import { until } from "./until.ts";

/** A task that one of our agents has handed on, as its executor got it. */
export interface Handed {
  readonly task: TaskRef;
  readonly request: TaskRequest;
  /** The header of that name. */
  readonly traceparent: string | undefined;
}

const now = () => new Date().toISOString();

/** Another agent to which ours hand tasks on: it does what a test says. */
export class Executor {
  readonly id: string;
  /** Every copy of a task's message, in the order in which they came. */
  readonly handed: Handed[] = [];
  readonly controls: Control[] = [];
  readonly #nc: NatsConnection;

  /**
   * Listens from now on, on a connection of the test's.
   *
   * @param work what it does with each task by itself; what it throws fails the test
   */
  constructor(nc: NatsConnection, id: string, work?: (handed: Handed) => Promise<void>) {
    this.id = id;
    this.#nc = nc;
    const listen = (kind: string, take: (message: Msg) => void) =>
      nc.subscribe(`a2a.v1.${kind}.*.${id}.>`, {
        callback: (error, message) => {
          if (error !== null) throw error;
          take(message);
        },
      });
    listen("task", (message) => {
      const handed = handedOf(message);
      this.handed.push(handed);
      void work?.(handed);
    });
    listen("control", (message) => void this.controls.push(controlOf(message)));
  }

  /** Waits for the task that a task of ours hands on. */
  handedBy(parentTaskId: string): Promise<Handed> {
    return until(`a task of ${parentTaskId}'s for ${this.id}`, () =>
      this.handed.find(({ request }) => request.clientTaskRef === parentTaskId),
    );
  }

  /** Waits until a task is cancelled. */
  cancelled({ taskId }: TaskRef): Promise<Control> {
    return until(`a cancel of ${taskId}`, () =>
      this.controls.find((control) => control.taskId === taskId && control.kind === "cancel"),
    );
  }

  /** Publishes an event; one that is published twice is on the stream twice if its id is changed by a suffix. */
  async say(event: WireEvent, suffix = ""): Promise<void> {
    await publishOnStream(this.#nc, { ...event, msgId: event.msgId + suffix });
  }

  accept(task: TaskRef): Promise<void> {
    return this.say(acceptedEvent(task, now()));
  }

  reject(task: TaskRef, code: ErrorCode, message: string): Promise<void> {
    return this.say(rejectedEvent(task, { code, message }, now()));
  }

  status(task: TaskRef, revision: number, content: string): Promise<void> {
    return this.say(statusEvent(task, { revision, state: "TASK_STATE_WORKING", content }, now()));
  }

  /** Puts an artifact into the object store and tells of it. */
  async artifact(task: TaskRef, revision: number, name: string, bytes: Uint8Array): Promise<ArtifactRef> {
    const artifact = artifactRef(task.taskId, {
      id: `artifact-${revision}`,
      name,
      mediaType: "text/plain",
      digest: `sha256:${createHash("sha256").update(bytes).digest("hex")}`,
      sizeBytes: bytes.byteLength,
    });
    await putObject(this.#nc, { ...artifact, bytes });
    await this.say(artifactEvent(task, { revision, artifact }, now()));
    return artifact;
  }

  result(
    task: TaskRef,
    of: {
      readonly revision: number;
      readonly content: string;
      readonly state?: TaskState;
      readonly artifacts?: readonly ArtifactRef[];
    },
  ): Promise<void> {
    return this.say(resultEvent(task, { state: "TASK_STATE_COMPLETED", metrics: {}, ...of }, now()));
  }
}

function handedOf({ subject, data, headers }: Msg): Handed {
  const read = readEnvelope(subject, data, Date.now());
  if (!read.ok || read.value.subject.kind !== "task") throw new Error(`${subject}: no task`);
  const { from, to, messageId } = read.value.subject;
  const request = readTaskPayload(read.value.envelope.payload);
  if (!request.ok) throw new Error(`${subject}: ${request.reason}`);
  return {
    task: { taskId: taskIdOf(from, to, messageId), messageId, from, to },
    request: request.value,
    traceparent: headers?.get("traceparent") || undefined,
  };
}

function controlOf({ subject, data }: Msg): Control {
  const read = readEnvelope(subject, data, Date.now());
  if (!read.ok || read.value.subject.kind !== "control") throw new Error(`${subject}: no control`);
  return readControl(read.value.envelope, read.value.subject);
}
