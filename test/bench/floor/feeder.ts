import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Client } from "./client.ts";
import type { Order } from "./orders.ts";

export interface FeederOptions {
  readonly queueUrl: string;
  /** How many messages a process takes at once. */
  readonly most: number;
  readonly children: readonly ChildProcess[];
  readonly client: () => Client;
}

/** Receives messages of a queue, as the host does, gives them to processes that are free, and removes what is done. */
export class Feeder {
  readonly #options: FeederOptions;
  readonly #free: ChildProcess[];
  #freed = Promise.withResolvers<void>();
  #stopped = false;

  constructor(options: FeederOptions) {
    this.#options = options;
    this.#free = [...options.children];
    void this.#poll().catch((error: unknown) => {
      if (!this.#stopped) throw error;
    });
  }

  stop(): void {
    this.#stopped = true;
  }

  async #poll(): Promise<void> {
    const { client, queueUrl, most } = this.#options;
    while (!this.#stopped) {
      const child = this.#free.pop();
      if (child === undefined) {
        await this.#freed.promise;
        continue;
      }
      const messages = await client().receive(queueUrl, most);
      if (messages.length === 0) this.#release(child);
      else
        void this.#take(
          child,
          messages.map(({ body }) => body),
          messages.map(({ handle }) => handle),
        );
    }
  }

  async #take(child: ChildProcess, bodies: string[], handles: readonly string[]): Promise<void> {
    const done = once(child, "message");
    const order: Order = { take: bodies };
    child.send(order);
    await done;
    this.#release(child);
    await this.#options.client().remove(this.#options.queueUrl, handles);
  }

  #release(child: ChildProcess): void {
    this.#free.push(child);
    this.#freed.resolve();
    this.#freed = Promise.withResolvers<void>();
  }
}
