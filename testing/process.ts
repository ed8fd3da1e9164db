import type { Messenger } from "../shared/events/messenger.ts";
import type { Publisher } from "../shared/events/publisher.ts";
import type { Clock } from "../shared/tasks/clock.ts";
import type { Entry } from "../shared/tasks/items.ts";
import type { Store } from "../shared/tasks/store.ts";
import type { Values } from "../shared/tasks/values.ts";

/** Something that a process does to the world outside, before which and after which it may die. */
export interface Write {
  /** Which function's process. */
  readonly by: "work" | "control" | "events" | "sweep";
  /** The part and its method, such as `store.append`. */
  readonly kind: string;
  readonly taskId: string;
  /** For `store.append`: what is put. */
  readonly entry?: Entry;
}

/**
 * What happens to a process at a write: it dies before that takes effect, or after, when nobody gets its answer any
 * more; or it is stopped before for so many milliseconds, as a process that is frozen is.
 */
export type Fate = "before" | "after" | { readonly stopMs: number } | undefined;

/** The parts that a process reaches outside itself. */
interface Outside {
  readonly store: Store;
  readonly values: Values;
  readonly publisher: Publisher;
  readonly messenger: Messenger;
}

/**
 * One function's process, which may die at any of its writes. What is dead gets no answer to anything and no timer
 * fires in it, so however its code goes on, nobody outside will notice.
 */
export class Process {
  readonly by: Write["by"];
  /** The process's own: it stands still when the process does. */
  readonly clock: Clock;
  readonly #outer: Clock;
  readonly #fate: (write: Write) => Fate;
  readonly #died = Promise.withResolvers<void>();
  #dead = false;
  /** Resolves when the process goes on. */
  #stopped: Promise<void> | undefined;

  constructor(by: Write["by"], clock: Clock, fate: (write: Write) => Fate) {
    this.by = by;
    this.#outer = clock;
    this.#fate = fate;
    this.clock = {
      now: clock.now,
      timer: (ms, fn) => {
        let forgotten = false;
        const fire = () => {
          if (this.#dead || forgotten) return;
          if (this.#stopped === undefined) fn();
          else void this.#stopped.then(fire);
        };
        const forget = clock.timer(ms, fire);
        return () => {
          forgotten = true;
          forget();
        };
      },
    };
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** Resolves when the process dies. */
  get died(): Promise<void> {
    return this.#died.promise;
  }

  kill(): void {
    this.#dead = true;
    this.#died.resolve();
  }

  /** A call for which it is told whether the process survives it. */
  async write<T>(write: Omit<Write, "by">, call: () => Promise<T>): Promise<T> {
    if (this.#dead) return await never();
    const fate = this.#fate({ ...write, by: this.by });
    if (fate === "before") this.kill();
    else if (typeof fate === "object") this.#stop(fate.stopMs);
    return await this.#reach(call, fate === "after");
  }

  async read<T>(call: () => Promise<T>): Promise<T> {
    return await this.#reach(call, false);
  }

  async #reach<T>(call: () => Promise<T>, last: boolean): Promise<T> {
    await this.#stopped;
    if (this.#dead) return await never();
    const answer = await call();
    if (last) this.kill();
    await this.#stopped;
    return this.#dead ? await never() : answer;
  }

  #stop(ms: number): void {
    this.#stopped = new Promise((resolve) => {
      this.#outer.timer(ms, () => {
        this.#stopped = undefined;
        resolve();
      });
    });
  }

  /** The parts outside as this process reaches them. */
  outside({ store, values, publisher, messenger }: Outside): Outside {
    const put = <T>(kind: string, taskId: string, call: () => Promise<T>) =>
      this.write({ kind, taskId }, call);
    const own: Values = {
      put: (taskId, bytes) => put("values.put", taskId, () => values.put(taskId, bytes)),
      ref: values.ref,
      get: (ref) => this.read(() => values.get(ref)),
      keep: async (taskId, text) => {
        const kept = await values.keep(taskId, text);
        return "text" in kept ? kept : await put("values.put", taskId, async () => kept);
      },
      text: (kept) => this.read(() => values.text(kept)),
    };
    return {
      values: own,
      store: {
        admit: (head) => put("store.admit", head.taskId, () => store.admit(head)),
        putInput: (taskId, ...rest) => put("store.putInput", taskId, () => store.putInput(taskId, ...rest)),
        input: (...args) => this.read(() => store.input(...args)),
        head: (taskId) => this.read(() => store.head(taskId)),
        claim: (hint, ...rest) => put("store.claim", hint.taskId, () => store.claim(hint, ...rest)),
        claimSlot: (head, ...rest) =>
          put("store.claimSlot", head.taskId, () => store.claimSlot(head, ...rest)),
        queue: (head, max) => put("store.queue", head.taskId, () => store.queue(head, max)),
        slots: (runtime) => this.read(() => store.slots(runtime)),
        allSlots: (runtimes) => this.read(() => store.allSlots(runtimes)),
        nextWaiter: (...args) => this.read(() => store.nextWaiter(...args)),
        dropWaiter: (waiter) => put("store.dropWaiter", waiter.taskId, () => store.dropWaiter(waiter)),
        news: (taskId, ...rest) => put("store.news", taskId, () => store.news(taskId, ...rest)),
        suspend: (held, of) => put("store.suspend", held.taskId, () => store.suspend(held, of)),
        beat: (taskId, ...rest) => put("store.beat", taskId, () => store.beat(taskId, ...rest)),
        append: (taskId, entry, expiresAt) =>
          this.write({ kind: "store.append", taskId, entry }, () => store.append(taskId, entry, expiresAt)),
        entries: (...args) => this.read(() => store.entries(...args)),
        last: (taskId) => this.read(() => store.last(taskId)),
        settle: (held, ...rest) => put("store.settle", held.taskId, () => store.settle(held, ...rest)),
        bindChild: (child, parent, ...rest) =>
          put("store.bindChild", parent.taskId, () => store.bindChild(child, parent, ...rest)),
        parentOf: (...args) => this.read(() => store.parentOf(...args)),
        due: store.due,
        postpone: (head, ...rest) => put("store.postpone", head.taskId, () => store.postpone(head, ...rest)),
      },
      publisher: {
        publish: (task, ...rest) =>
          put("publisher.publish", task.taskId, () => publisher.publish(task, ...rest)),
        lastRevision: (task) => this.read(() => publisher.lastRevision(task)),
        repeat: (task, ...rest) =>
          put("publisher.publish", task.taskId, () => publisher.repeat(task, ...rest)),
      },
      messenger: {
        send: (message, ...rest) => put("messenger.send", "", () => messenger.send(message, ...rest)),
        fetch: (artifact) => this.read(() => messenger.fetch(artifact)),
        countArtifacts: (child) => this.read(() => messenger.countArtifacts(child)),
        controlsHeard: (runtime) => this.read(() => messenger.controlsHeard(runtime)),
      },
    };
  }
}

/** What a dead process waits for. */
const never = () => new Promise<never>(() => {});
