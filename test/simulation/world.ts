import type { NatsConnection } from "@nats-io/transport-node";
import { type QueueName, visibilitySec } from "../../infra/sizes.ts";
import { timing } from "../../shared/config/timing.ts";
import type { Messenger } from "../../shared/events/messenger.ts";
import { type EventStream, publisherOver } from "../../shared/events/publisher.ts";
import {
  CONTROLS_STREAM,
  controlsConsumer,
  EVENTS_STREAM,
  eventsConsumer,
  TASKS_STREAM,
  tasksConsumer,
} from "../../shared/nats/streams.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import { pauseBy } from "../../shared/tasks/insist.ts";
import { MAX_RECEIVES } from "../../shared/tasks/messages.ts";
import { MAX_INLINE_BYTES, type Values } from "../../shared/tasks/values.ts";
import { memoryValues } from "../../shared/testing/memory-values.ts";
import { eventSubject } from "../../shared/wire/index.ts";
import { type Received, SimulatedQueue } from "./parts/queue.ts";
import { type Ack, type Delivered, type Held, SimulatedStreams } from "./parts/streams.ts";
import { type Changed, SimulatedTable } from "./parts/table.ts";
import { named, tableClient } from "./parts/table-client.ts";
import type { Operation, Process } from "./process.ts";
import type { Scheduler } from "./scheduler.ts";

const HOUR = 3_600_000;
/** In which a stream knows a message again: as we create it, and as an operator may have it. */
const WINDOWS = { task: 24 * HOUR, event: 72 * HOUR, short: 120_000 } as const;

/** What a world tells of what happens in it, for those who watch over its invariants. */
export interface Watching {
  readonly changed: Changed;
  /** A stream has taken a message. */
  readonly published: (message: Held) => void;
  /** What is said of a message that is still open. */
  readonly acknowledged: (message: Held, ack: Ack) => void;
}

/** The parts outside all processes, and how a process reaches them. */
export class World {
  readonly scheduler: Scheduler;
  readonly timing = timing();
  readonly table: SimulatedTable;
  readonly streams: SimulatedStreams;
  readonly values = memoryValues();
  readonly queues: Readonly<Record<QueueName, SimulatedQueue>>;
  /** Starts an invocation; whoever makes functions sets it. */
  invoke: (queue: QueueName, message: Received) => void = () => {};
  /** Whose request takes effect at the moment. */
  acting: Process | undefined;
  /** What agents have given out. */
  readonly #objects = new Map<string, Uint8Array>();
  readonly #watching: Watching;
  readonly #listeners = new Map<string, Set<{ readonly process: Process; readonly told: () => void }>>();

  constructor(scheduler: Scheduler, watching: Watching, runtimes: readonly string[]) {
    this.scheduler = scheduler;
    this.#watching = watching;
    this.table = new SimulatedTable({
      changed: watching.changed,
      learn: (apply) => {
        if (!scheduler.chance("index")) return apply();
        scheduler.add({ what: () => "the index learns of a write", happen: apply });
      },
    });
    this.streams = new SimulatedStreams(scheduler);
    const short = scheduler.choices.below(2) === 1;
    const stream = (name: string, kind: string, duplicateMs: number) =>
      this.streams.addStream({
        name,
        prefix: `a2a.v1.${kind}.`,
        duplicateMs: short ? WINDOWS.short : duplicateMs,
      });
    stream(TASKS_STREAM, "task", WINDOWS.task);
    stream(CONTROLS_STREAM, "control", WINDOWS.task);
    stream(EVENTS_STREAM, "event", WINDOWS.event);
    const queue = (name: QueueName) =>
      new SimulatedQueue({
        name,
        scheduler,
        visibilityMs: visibilitySec(name) * 1_000,
        maxReceives: MAX_RECEIVES,
        receive: (message) => this.invoke(name, message),
      });
    this.queues = {
      tasks: queue("tasks"),
      controls: queue("controls"),
      events: queue("events"),
      work: queue("work"),
    };
    for (const runtime of runtimes) {
      this.#consumer(TASKS_STREAM, "task", tasksConsumer(runtime), runtime, "tasks");
      this.#consumer(CONTROLS_STREAM, "control", controlsConsumer(runtime), runtime, "controls");
      this.#consumer(EVENTS_STREAM, "event", eventsConsumer(runtime), runtime, "events");
    }
  }

  #consumer(stream: string, kind: string, name: string, runtime: string, queue: QueueName): void {
    this.streams.addConsumer({
      stream,
      name,
      filter: (subject) => subject.startsWith(`a2a.v1.${kind}.`) && subject.split(".")[4] === runtime,
      ackWaitMs: this.timing.ackWaitMs,
      deliver: (message) =>
        this.scheduler.add({
          what: () => `the bridge forwards ${message.subject}`,
          happen: () => this.#forward(message, queue),
        }),
    });
  }

  /** The bridge keeps no state: what it loses comes again, and what it sends twice is there twice. */
  #forward(message: Delivered, queue: QueueName): void {
    const { scheduler } = this;
    if (scheduler.chance("lost")) {
      scheduler.say(() => `the bridge loses ${message.subject}`);
      return;
    }
    const { stream, consumer, seq, ackSubject, subject, headers, deliveries, time: storedAt, body } = message;
    const forwarded = { stream, consumer, seq, ackSubject, subject, headers, deliveries, storedAt, body };
    scheduler.say(() => `the bridge forwards ${subject}, delivery ${deliveries}`);
    this.queues[queue].send(JSON.stringify(forwarded));
    if (scheduler.chance("delivery")) this.queues[queue].send(JSON.stringify(forwarded));
  }

  /** A message of a peer, or of one of our agents. */
  publish(message: { readonly subject: string; readonly msgId: string; readonly body: string }): boolean {
    const { seq, duplicate } = this.streams.publish(message);
    if (duplicate) return false;
    const held = this.streams.messages(streamOf(message.subject))[seq - 1];
    if (held !== undefined) this.#watching.published(held);
    return true;
  }

  /** Tells the workers of a task that its journal has news; core NATS promises nothing. */
  #tell(taskId: string): void {
    for (const { process, told } of this.#listeners.get(taskId) ?? []) {
      if (this.scheduler.chance("lost")) continue;
      this.scheduler.add({
        what: () => `${process.name} is told of news`,
        happen: () => process.reach(told),
      });
    }
  }

  /** The parts as a process reaches them. */
  outside(process: Process) {
    const reach = <T>(operation: Operation<T>) =>
      process.call({ ...operation, apply: () => this.#acting(process, operation.apply) });
    const nats = <T>(what: () => string, writes: boolean, apply: () => T) =>
      process.call({ what, writes, apply, silence: noAnswer, refusal: noAnswer });
    const values = this.#valuesFor(process);
    const store = dynamoStore({
      client: tableClient(this.table, reach),
      table: "tasks",
      pause: (ms) => pauseBy(process.clock.timer, ms),
    });
    const publisher = publisherOver(this.#eventStream(nats), { values, now: process.clock.now });
    return {
      store,
      values,
      publisher,
      messenger: this.#messenger(nats),
      connection: async () =>
        connectionOf((subject, payload) =>
          nats(
            () => `says ${payload} of ${subject}`,
            true,
            () => {
              const settled = this.streams.acknowledge(subject, payload);
              if (settled !== undefined) this.#watching.acknowledged(settled.message, settled.ack);
            },
          ),
        ),
      tell: (taskId: string) =>
        nats(
          () => `tells of ${taskId}`,
          true,
          () => this.#tell(taskId),
        ),
      listen: (taskId: string, told: () => void) =>
        nats(
          () => `listens for ${taskId}`,
          false,
          () => this.#listen(process, taskId, told),
        ),
      hint: (hint: object, delaySeconds = 0) =>
        process.call({
          what: () => `hints at ${JSON.stringify(hint)} in ${delaySeconds} s`,
          writes: true,
          apply: () => this.queues.work.send(JSON.stringify(hint), delaySeconds * 1_000),
          silence: () => named("QueueSendError", "no answer from the queue"),
          refusal: () => named("QueueSendError", "the queue refuses"),
        }),
    };
  }

  #acting<T>(process: Process, apply: () => T): T {
    this.acting = process;
    try {
      return apply();
    } finally {
      this.acting = undefined;
    }
  }

  #listen(process: Process, taskId: string, told: () => void): () => void {
    const listener = { process, told };
    const listeners = this.#listeners.get(taskId) ?? new Set();
    this.#listeners.set(taskId, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  #eventStream(nats: <T>(what: () => string, writes: boolean, apply: () => T) => Promise<T>): EventStream {
    return {
      putObject: ({ key, bytes }) =>
        nats(
          () => `copies the artifact ${key}`,
          true,
          () => void this.#objects.set(key, bytes),
        ),
      publish: async ({ subject, msgId, body }) => {
        await nats(
          () => `publishes ${msgId}`,
          true,
          () => this.publish({ subject, msgId, body }),
        );
      },
      lastOn: (subject) =>
        nats(
          () => `reads the last on ${subject}`,
          false,
          () => {
            const last = this.streams.lastOn(EVENTS_STREAM, subject);
            return last === undefined ? null : { subject: last.subject, body: Buffer.from(last.body) };
          },
        ),
    };
  }

  #messenger(nats: <T>(what: () => string, writes: boolean, apply: () => T) => Promise<T>): Messenger {
    return {
      send: async (message) => {
        await nats(
          () => `sends ${message.subject}`,
          true,
          () => this.publish(message),
        );
      },
      countArtifacts: ({ executor, delegator, childTaskId }) => {
        const subject = eventSubject(executor, delegator, childTaskId, "artifact");
        return nats(
          () => `counts what is on ${subject}`,
          false,
          () => this.streams.countOn(EVENTS_STREAM, subject),
        );
      },
      fetch: ({ key }) =>
        nats(
          () => `fetches the artifact ${key}`,
          false,
          () => this.#objects.get(key) ?? missing(key),
        ),
    };
  }

  #valuesFor(process: Process): Values {
    const { values } = this;
    const bucket = <T>(what: () => string, writes: boolean, promise: () => Promise<T>): Promise<T> =>
      process
        .call({
          what,
          writes,
          apply: promise,
          silence: noAnswer,
          refusal: () => named("SlowDown", "slow down"),
        })
        .then((answer) => answer);
    return {
      ...values,
      put: (taskId, bytes) =>
        bucket(
          () => `puts a value of ${taskId}`,
          true,
          () => values.put(taskId, bytes),
        ),
      get: (ref) =>
        bucket(
          () => `gets ${ref.key}`,
          false,
          () => values.get(ref),
        ),
      keep: async (taskId, text) =>
        Buffer.byteLength(text) <= MAX_INLINE_BYTES
          ? { text }
          : await bucket(
              () => `keeps a value of ${taskId}`,
              true,
              () => values.keep(taskId, text),
            ),
      text: async (kept) =>
        "text" in kept
          ? kept.text
          : await bucket(
              () => `gets ${kept.ref.key}`,
              false,
              () => values.text(kept),
            ),
    };
  }
}

const noAnswer = () => named("TimeoutError", "no answer");

function missing(key: string): never {
  throw new Error(`no object ${key}`);
}

function streamOf(subject: string): string {
  if (subject.startsWith("a2a.v1.task.")) return TASKS_STREAM;
  return subject.startsWith("a2a.v1.control.") ? CONTROLS_STREAM : EVENTS_STREAM;
}

/** A connection of which only the requests are used by which a message is acknowledged. */
function connectionOf(request: (subject: string, payload: string) => Promise<void>): NatsConnection {
  // Bodies always travel inline here, so nothing else of a connection is asked for.
  return { request } as unknown as NatsConnection;
}
