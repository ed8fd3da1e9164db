import * as z from "zod";
import { isCausedBy } from "../../functions/control/decide.ts";
import { firstEvent } from "../../shared/events/drafts.ts";
import { openChildren } from "../../shared/tasks/delegation.ts";
import { fold } from "../../shared/tasks/fold.ts";
import { type Entry, HEAD_KEY, type Head } from "../../shared/tasks/items.ts";
import type { MemoryValues } from "../../shared/testing/memory-values.ts";
import { parseSubject, readControl, readEnvelope, taskIdOf, taskState } from "../../shared/wire/index.ts";
import type { Invariant, Violation } from "./invariants.ts";
import type { Item } from "./parts/expressions.ts";
import type { Ack, Held } from "./parts/streams.ts";
import type { Key } from "./parts/table.ts";
import type { Process } from "./process.ts";
import type { Scheduler } from "./scheduler.ts";
import { EventsWatch } from "./watch-events.ts";
import { JournalWatch } from "./watch-journal.ts";
import { SlotsWatch } from "./watch-slots.ts";

/** One task, as it is stored and as its requester sees it. */
export interface Watched {
  readonly taskId: string;
  readonly journal: JournalWatch;
  readonly events: EventsWatch;
}

/** What is looked at of an event; docs/wire.md tells the whole, and test/wire holds the code to it. */
const published = z.object({
  payload: z.object({
    revision: z.number(),
    state: taskState(),
    content: z.string().default(""),
    error: z.object({ Code: z.string(), Message: z.string() }).optional(),
  }),
});

/** Watches over the invariants while a history goes on. */
export class Watch {
  readonly tasks = new Map<string, Watched>();
  /** The subjects of messages that were terminated because they had ended their function on every receive. */
  readonly buried: string[] = [];
  /** The first that was broken. */
  violation: Violation | undefined;
  readonly #scheduler: Scheduler;
  readonly #values: () => MemoryValues;
  /** The epoch under which a process works on a task. */
  readonly #claims = new Map<string, number>();
  /** The tasks by the key under which they are rejected. */
  readonly #rejections = new Map<string, string>();
  /** The tasks whose end somebody has asked for. */
  readonly #cancelled = new Set<string>();
  readonly #slots: SlotsWatch;

  /** @param max how many slots each agent has; 0 for as many as it likes */
  constructor(scheduler: Scheduler, values: () => MemoryValues, max: number) {
    this.#scheduler = scheduler;
    this.#values = values;
    this.#slots = new SlotsWatch(max, this.broken);
  }

  readonly broken = (invariant: Invariant, text: string): void => {
    this.violation ??= { invariant, text };
  };

  of(taskId: string): Watched {
    const known = this.tasks.get(taskId);
    if (known !== undefined) return known;
    const watched = {
      taskId,
      journal: new JournalWatch(taskId, this.broken),
      events: new EventsWatch(taskId, this.broken),
    };
    this.tasks.set(taskId, watched);
    return watched;
  }

  /** A message will be published that asks for a task. */
  expect(from: string, to: string, messageId: string): Watched {
    const taskId = taskIdOf(from, to, messageId);
    this.#rejections.set(`msg_${messageId}`, taskId);
    return this.of(taskId);
  }

  changed({ pk, sk }: Key, before: Item | undefined, after: Item | undefined, by: Process | undefined): void {
    if (sk === HEAD_KEY) this.#headChanged(pk, before, after, by);
    else if (sk.startsWith("e#")) {
      const { clock, choices } = this.#scheduler;
      const calm = choices.isCalm && by?.disturbed === false;
      // Our own store has written it.
      this.of(pk).journal.entryWritten(before, after as unknown as Entry, clock.now(), calm);
    }
  }

  #headChanged(pk: string, before: Item | undefined, after: Item | undefined, by: Process | undefined): void {
    const watched = this.of(pk);
    // Our own store has written it.
    const now = after as Head | undefined;
    const earlier = watched.journal.head;
    const claims = `${by?.name} ${pk}`;
    watched.journal.headWritten(before === undefined ? undefined : earlier, now, this.#claims.get(claims));
    if (now === undefined) return;
    this.#slots.headWritten(pk, now);
    if (now.epoch > (earlier?.epoch ?? 0) && by !== undefined) this.#claims.set(claims, now.epoch);
    if (now.published > watched.events.revision)
      this.broken(
        "settled",
        `the head of ${pk} says that ${now.published} is published, and the stream has ${watched.events.revision}`,
      );
    if (now.dueAt === undefined && now.reject === undefined) this.#leftIndex(pk, watched);
  }

  /** Nobody looks after a task any more. */
  #leftIndex(taskId: string, { journal, events }: Watched): void {
    const of = `the head of ${taskId} is no longer due`;
    if (events.revision < journal.revision)
      this.broken("settled", `${of}, and revision ${events.revision + 1} is not published`);
    // A child that has not told its id yet is cancelled when it does.
    for (const { step, told } of openChildren(fold(journal.entries)))
      if (told?.taskId !== undefined && !this.#cancelled.has(told.taskId))
        this.broken("settled", `${of}, and the child of its step ${step} is not cancelled`);
  }

  published({ subject, body }: Held): void {
    const parsed = parseSubject(subject);
    if (parsed?.kind === "control" && parsed.control === "cancel") this.#cancelled.add(parsed.taskId);
    if (parsed?.kind !== "event") return;
    const { payload } = published.parse(JSON.parse(body));
    const watched = this.of(this.#rejections.get(parsed.taskKey) ?? parsed.taskKey);
    const shown = { ...payload, kind: parsed.event };
    watched.events.taken(shown, body, this.#stored(watched, shown.revision));
  }

  #stored({ journal, taskId }: Watched, revision: number): string | undefined {
    if (revision === 1) {
      const first = journal.head === undefined ? undefined : firstEvent({ ...journal.head, taskId }).body;
      return first !== undefined && "text" in first ? first.text : undefined;
    }
    const body = journal.event(revision)?.body;
    if (body === undefined || "text" in body) return body?.text;
    const bytes = this.#values().objects.get(body.ref.key);
    return bytes === undefined ? undefined : Buffer.from(bytes).toString("utf8");
  }

  /** A step's function is called. */
  called(process: Process, taskId: string, step: string): void {
    const { journal } = this.of(taskId);
    if (!journal.stored.has(step)) return;
    // A worker that cannot know yet that it has lost its claim may go on with what nobody will see.
    if (this.#claims.get(`${process.name} ${taskId}`) === journal.head?.epoch)
      this.broken("once", `${process.name} runs the step ${step} of ${taskId}, which is stored`);
  }

  /** A handler sees a step's result, and may act upon it. */
  seen(taskId: string, step: string): void {
    if (!this.of(taskId).journal.stored.has(step))
      this.broken(
        "once",
        `the handler of ${taskId} sees the result of the step ${step}, which is not stored`,
      );
  }

  /** It is said what becomes of a message. */
  settled(message: Held, ack: Ack): void {
    if (ack.kind === "ack") this.#acknowledged(message);
    if (ack.kind !== "term") return;
    if (ack.reason.startsWith("the function died")) this.buried.push(message.subject);
    else if (parseSubject(message.subject)?.kind === "task")
      this.broken("no-loss", `${message.subject} is terminated: ${ack.reason}`);
  }

  #acknowledged({ subject, body }: Held): void {
    const parsed = parseSubject(subject);
    if (parsed?.kind === "task") {
      const watched = this.of(taskIdOf(parsed.from, parsed.to, parsed.messageId));
      if (watched.journal.head === undefined)
        this.broken("acked-after", `${subject} is acknowledged, and nothing is decided`);
      else if (watched.events.revision < 1)
        this.broken("acked-after", `${subject} is acknowledged, and what was decided is not said`);
      else if (watched.journal.head.dueAt === undefined && watched.events.revision < watched.journal.revision)
        this.broken("acked-after", `${subject} is acknowledged, and the end is not said`);
    } else if (parsed?.kind === "control") this.#controlAcknowledged(subject, body, parsed.taskId);
  }

  #controlAcknowledged(subject: string, body: string, taskId: string): void {
    const parsed = readEnvelope(subject, Buffer.from(body), Number.MAX_SAFE_INTEGER / 2);
    if (!parsed.ok || parsed.value.subject.kind !== "control") return;
    const asked = readControl(parsed.value.envelope, parsed.value.subject);
    const { journal, events } = this.of(taskId);
    if (journal.head?.reject !== undefined) return;
    const own = journal.entries.find((entry) => isCausedBy(entry, asked));
    // An answer that changes nothing leaves nothing.
    if (own === undefined && asked.kind.endsWith("_reply")) return;
    if (own === undefined && journal.end === undefined)
      this.broken("acked-after", `${subject} is acknowledged, and nothing is stored of it`);
    const said = own ?? journal;
    if (events.revision < said.revision)
      this.broken("acked-after", `${subject} is acknowledged, and revision ${said.revision} is not said`);
  }
}
