import { consumerTimeoutSec, type QueueName, visibilitySec } from "../../infra/sizes.ts";
import { timing } from "../../shared/config/timing.ts";
import {
  CONTROLS_STREAM,
  controlsConsumer,
  EVENTS_STREAM,
  eventsConsumer,
  TASKS_STREAM,
  tasksConsumer,
} from "../../shared/nats/streams.ts";
import { MAX_RECEIVES } from "../../shared/tasks/messages.ts";
import { memoryValues } from "../../shared/testing/memory-values.ts";
import { type Received, SimulatedQueue } from "./parts/queue.ts";
import { type Ack, type Delivered, type Held, SimulatedStreams } from "./parts/streams.ts";
import { type Changed, SimulatedTable } from "./parts/table.ts";
import type { Process } from "./process.ts";
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

/** The parts outside all processes; outside.ts tells how a process reaches them. */
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
  /** What agents have given out, by key. */
  readonly objects = new Map<string, Uint8Array>();
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
        visibilityMs: visibilitySec(consumerTimeoutSec(name)) * 1_000,
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
  readonly publish = (message: {
    readonly subject: string;
    readonly msgId: string;
    readonly body: string;
  }): void => {
    const { seq, duplicate } = this.streams.publish(message);
    if (duplicate) return;
    const held = this.streams.messages(streamOf(message.subject))[seq - 1];
    if (held !== undefined) this.#watching.published(held);
  };

  /** What is said on a message's ack subject. */
  acknowledge(subject: string, payload: string): void {
    const settled = this.streams.acknowledge(subject, payload);
    if (settled !== undefined) this.#watching.acknowledged(settled.message, settled.ack);
  }

  /** Tells the workers of a task that its journal has news; core NATS promises nothing. */
  tell(taskId: string): void {
    for (const { process, told } of this.#listeners.get(taskId) ?? []) {
      if (this.scheduler.chance("lost")) continue;
      this.scheduler.add({
        what: () => `${process.name} is told of news`,
        happen: () => process.reach(told),
      });
    }
  }

  listen(process: Process, taskId: string, told: () => void): () => void {
    const listener = { process, told };
    const listeners = this.#listeners.get(taskId) ?? new Set();
    this.#listeners.set(taskId, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  /** Does something in the name of a process. */
  as<T>(process: Process, apply: () => T): T {
    this.acting = process;
    try {
      return apply();
    } finally {
      this.acting = undefined;
    }
  }
}

function streamOf(subject: string): string {
  if (subject.startsWith("a2a.v1.task.")) return TASKS_STREAM;
  return subject.startsWith("a2a.v1.control.") ? CONTROLS_STREAM : EVENTS_STREAM;
}
