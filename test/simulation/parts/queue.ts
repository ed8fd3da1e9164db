import type { Scheduler } from "../scheduler.ts";

/** A message as somebody has received it. */
export interface Received {
  readonly id: number;
  readonly body: string;
  /** How often it was received, this time included. */
  readonly receives: number;
}

interface Message {
  readonly id: number;
  readonly body: string;
  receives: number;
  /** Whether it was handed out though somebody had it. */
  doubled: boolean;
  /** Forgets when it becomes visible. */
  forget: () => void;
}

/** A message that nobody could take. */
export interface DeadLetter {
  readonly queue: string;
  readonly body: string;
}

/** How early a message may be visible again though somebody has it: SQS promises "at least once", and no more. */
const AT_ONCE_MS = 0;

/**
 * A standard queue of SQS with a dead-letter queue behind it: each message is received at least once, in any order, and
 * again when it is not deleted within its visibility timeout (queue.contract.test.ts holds it against an emulator).
 */
export class SimulatedQueue {
  readonly name: string;
  readonly dead: DeadLetter[] = [];
  readonly #scheduler: Scheduler;
  readonly #visibilityMs: number;
  readonly #maxReceives: number;
  readonly #receive: (message: Received) => void;
  readonly #messages = new Map<number, Message>();
  #ids = 0;

  constructor(options: {
    name: string;
    scheduler: Scheduler;
    visibilityMs: number;
    maxReceives: number;
    receive: (message: Received) => void;
  }) {
    this.name = options.name;
    this.#scheduler = options.scheduler;
    this.#visibilityMs = options.visibilityMs;
    this.#maxReceives = options.maxReceives;
    this.#receive = options.receive;
  }

  get size(): number {
    return this.#messages.size;
  }

  /** The bodies of all messages, received or not. */
  get bodies(): string[] {
    return [...this.#messages.values()].map(({ body }) => body);
  }

  send(body: string, delayMs = 0): void {
    const message: Message = { id: ++this.#ids, body, receives: 0, doubled: false, forget: () => {} };
    this.#messages.set(message.id, message);
    this.#show(message, delayMs);
  }

  delete(id: number): void {
    this.#messages.get(id)?.forget();
    this.#messages.delete(id);
  }

  /** The message can be received after so many milliseconds. */
  #show(message: Message, ms: number): void {
    message.forget = this.#scheduler.later(ms, {
      what: () => `the queue ${this.name} hands out ${message.body}`,
      happen: () => this.#take(message),
    });
  }

  #take(message: Message): void {
    if (message.receives >= this.#maxReceives) {
      this.#messages.delete(message.id);
      this.dead.push({ queue: this.name, body: message.body });
      this.#scheduler.say(() => `the queue ${this.name} gives up ${message.body}`);
      return;
    }
    message.receives++;
    // A standard queue hands out a message twice now and then, not again and again.
    const again = !message.doubled && this.#scheduler.chance("delivery");
    message.doubled ||= again;
    this.#show(message, again ? AT_ONCE_MS : this.#visibilityMs);
    this.#receive({ id: message.id, body: message.body, receives: message.receives });
  }
}
