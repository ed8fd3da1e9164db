import { renameSync, writeFileSync } from "node:fs";
import type { AlarmChange, AlarmStatus } from "./alarms.ts";
import { Alarms } from "./alarms.ts";
import type { AlarmDefinition } from "./definitions.ts";
import { metricsIn } from "./emf.ts";
import { type MetricKey, MetricStore, MINUTE_MS } from "./store.ts";

/** The queues are looked at so many times a minute of the deployment's own, but not more often than this. */
const LOOKS_A_MINUTE = 2;
const MIN_LOOK_MS = 250;

/** What of a queue is measured. */
export interface QueueLook {
  readonly visible: number;
  readonly inFlight: number;
  /** In milliseconds since 1970. */
  readonly oldestSentAt: number | undefined;
}

export interface MetricsOptions {
  readonly alarms: readonly AlarmDefinition[];
  /** The names of queues, and how one is looked at. */
  readonly queues: readonly string[];
  readonly look: (queue: string) => QueueLook;
  readonly tables: readonly string[];
  /** How much faster than the machine's clock the deployment lives. */
  readonly scale: number;
  /** In milliseconds; by default the machine's, `scale` times faster. */
  readonly clock?: () => number;
  readonly onChange: (change: AlarmChange) => void;
  /** Where the alarms' states are kept. */
  readonly file: string;
  /** Does what the disk may refuse. */
  readonly attempt: (write: () => void) => void;
}

/**
 * The metrics of a host, and the alarms that watch them: what functions say of themselves, what AWS would say of queues
 * and functions, and the table's throttling as the functions have met it. Time is the deployment's own: a minute
 * under `--time-scale 60` is a second.
 */
export class Metrics {
  readonly store = new MetricStore();
  readonly #options: MetricsOptions;
  readonly #alarms: Alarms;
  readonly #begun = Date.now();
  readonly #timers: NodeJS.Timeout[] = [];
  #judged: number;

  constructor(options: MetricsOptions) {
    this.#options = options;
    this.#judged = Math.floor(this.now() / MINUTE_MS);
    this.#alarms = new Alarms(options.alarms, this.store, this.now());
  }

  start(): void {
    const { scale } = this.#options;
    const minute = MINUTE_MS / scale;
    const looking = setInterval(() => this.look(), Math.max(MIN_LOOK_MS, minute / LOOKS_A_MINUTE));
    const judging = setInterval(() => this.judge(), Math.max(MIN_LOOK_MS / 2, minute / LOOKS_A_MINUTE));
    this.#timers.push(looking.unref(), judging.unref());
    this.#save();
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** The deployment's own time, in milliseconds. */
  now(): number {
    if (this.#options.clock !== undefined) return this.#options.clock();
    return this.#begun + (Date.now() - this.#begun) * this.#options.scale;
  }

  status(): AlarmStatus[] {
    return this.#alarms.status();
  }

  put(key: MetricKey, value: number): void {
    this.store.put(key, value, this.now());
  }

  /** Takes in what a function has said, if it is a metric. */
  line(text: string): void {
    for (const { key, values } of metricsIn(text)) {
      for (const value of values) this.put(key, value);
      const { operation } = key.dimensions;
      if (key.name === "RequestsThrottled" && operation !== undefined)
        for (const value of values) this.#throttled(operation, value);
    }
  }

  /**
   * An invocation is over.
   *
   * @param durationMs as it would have been by the declared timeout
   */
  invoked(functionName: string, { ok, durationMs }: { ok: boolean; durationMs: number }): void {
    this.#lambda(functionName, "Invocations", 1);
    this.#lambda(functionName, "Errors", ok ? 0 : 1);
    this.#lambda(functionName, "Duration", durationMs);
  }

  throttled(functionName: string): void {
    this.#lambda(functionName, "Throttles", 1);
  }

  concurrent(functionName: string, running: number): void {
    this.#lambda(functionName, "ConcurrentExecutions", running);
  }

  #lambda(functionName: string, name: string, value: number): void {
    this.put({ namespace: "AWS/Lambda", name, dimensions: { FunctionName: functionName } }, value);
  }

  /** The table of this machine throttles nothing; what stands before it may, and only the functions know. */
  #throttled(operation: string, count: number): void {
    const isRead = /^(Get|Query|Scan|BatchGet)/.test(operation);
    const name = isRead ? "ReadThrottleEvents" : "WriteThrottleEvents";
    for (const table of this.#options.tables)
      this.put({ namespace: "AWS/DynamoDB", name, dimensions: { TableName: table } }, count);
  }

  /** Measures the queues. */
  look(): void {
    for (const queue of this.#options.queues) this.#lookAt(queue);
  }

  #lookAt(queue: string): void {
    const { look, scale } = this.#options;
    const { visible, inFlight, oldestSentAt } = look(queue);
    const put = (name: string, value: number) =>
      this.put({ namespace: "AWS/SQS", name, dimensions: { QueueName: queue } }, value);
    put("ApproximateNumberOfMessagesVisible", visible);
    put("ApproximateNumberOfMessagesNotVisible", inFlight);
    const age = oldestSentAt === undefined ? 0 : Math.max(0, Date.now() - oldestSentAt);
    put("ApproximateAgeOfOldestMessage", (age / 1_000) * scale);
  }

  /**
   * Judges the alarms by the minutes that are over; each half a minute after its end, for by then what was measured in
   * it has arrived.
   */
  judge(): void {
    const { onChange } = this.#options;
    const last = Math.floor((this.now() - MINUTE_MS / 2) / MINUTE_MS);
    let changed = false;
    while (this.#judged < last) {
      this.#judged++;
      for (const change of this.#alarms.evaluate(this.#judged * MINUTE_MS)) {
        changed = true;
        onChange(change);
      }
    }
    if (changed) this.#save();
  }

  #save(): void {
    const { file, attempt } = this.#options;
    const alarms = this.status().map(({ since, ...of }) => ({ ...of, since: new Date(since).toISOString() }));
    attempt(() => {
      writeFileSync(`${file}.next`, `${JSON.stringify({ alarms }, null, 2)}\n`);
      renameSync(`${file}.next`, file);
    });
  }
}
