import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { connectNats } from "../../shared/nats/connect.ts";
import { ensureStreams } from "../../shared/nats/streams.ts";
import {
  acceptedEvent,
  type Control,
  type Message,
  parseSubject,
  readControl,
  readEnvelope,
  readMessage,
  readTaskPayload,
  resultEvent,
  type TaskRef,
  type TaskRequest,
  taskIdOf,
  type WireEvent,
} from "../../shared/wire/index.ts";
import { startNats, type TestNats } from "../support/nats-server.ts";

/** A task as the scripted executor got it. */
export interface Got {
  readonly task: TaskRef;
  readonly request: TaskRequest;
  readonly message: Message;
}

/** What the executor does with a task: publishes events through `say`. */
export type Script = (got: Got, say: (event: WireEvent) => Promise<void>) => Promise<void>;

/** A NATS server with the wire's streams, and an executor on it that does what a test tells it. */
export interface Stage extends AsyncDisposable {
  readonly nats: TestNats;
  readonly nc: NatsConnection;
  readonly tasks: Got[];
  readonly controls: Control[];
  script: Script;
  onControl: (control: Control, say: (event: WireEvent) => Promise<void>) => Promise<void>;
}

export const now = () => new Date().toISOString();

/** Accepts and completes with the text it got. */
export const echoing: Script = async ({ task, message }, say) => {
  const content = message.parts.map((part) => ("text" in part ? part.text : JSON.stringify(part))).join("\n");
  await say(acceptedEvent(task, now()));
  await say(resultEvent(task, { revision: 2, state: "TASK_STATE_COMPLETED", content, metrics: {} }, now()));
};

/** Starts a server and an executor that answers for every runtime. */
export async function openStage(): Promise<Stage> {
  const nats = await startNats();
  const nc = await connectNats({ servers: [nats.url], credentials: "none", name: "test-executor" });
  await ensureStreams(await jetstreamManager(nc));
  const stage: Stage = {
    nats,
    nc,
    tasks: [],
    controls: [],
    script: echoing,
    onControl: async () => {},
    async [Symbol.asyncDispose]() {
      await nc.close();
      await nats.stop();
    },
  };
  const say = async ({ subject, msgId, body }: WireEvent) => {
    await jetstream(nc).publish(subject, body, { msgID: msgId });
  };
  nc.subscribe("a2a.v1.*.*.*.>", {
    callback: (error, { subject, data }) => {
      if (error !== null) throw error;
      const kind = parseSubject(subject)?.kind;
      if (kind === "task") void take(subject, data);
      if (kind === "control") void obey(subject, data);
    },
  });
  const take = async (subject: string, body: Uint8Array) => {
    const got = readTask(subject, body);
    stage.tasks.push(got);
    await stage.script(got, say);
  };
  const obey = async (subject: string, body: Uint8Array) => {
    const read = readEnvelope(subject, body, Date.now());
    if (!read.ok || read.value.subject.kind !== "control") throw new Error("a bad control");
    const control = readControl(read.value.envelope, read.value.subject);
    stage.controls.push(control);
    await stage.onControl(control, say);
  };
  await nc.flush();
  return stage;
}

function readTask(subject: string, body: Uint8Array): Got {
  const read = readEnvelope(subject, body, Date.now());
  if (!read.ok || read.value.subject.kind !== "task") throw new Error(`a bad task: ${JSON.stringify(read)}`);
  const { from, to, messageId } = read.value.subject;
  const request = readTaskPayload(read.value.envelope.payload);
  if (!request.ok) throw new Error(`a bad task: ${request.reason}`);
  const task = { taskId: taskIdOf(from, to, messageId), messageId, from, to };
  return { task, request: request.value, message: readMessage(request.value.a2a) };
}
