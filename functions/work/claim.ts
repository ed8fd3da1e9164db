import { Journal } from "../../shared/events/journal.ts";
import { Outlet } from "../../shared/events/outlet.ts";
import { emptyView, foldEntry, fruitlessClaims, type View } from "../../shared/tasks/fold.ts";
import type { Head } from "../../shared/tasks/items.ts";
import { patient } from "../../shared/tasks/values.ts";
import type { LogFields } from "../../shared/telemetry/fields.ts";
import type { WorkDeps } from "./work.ts";

/** One claim of one task: what all parts of its worker have in common. */
export class Claim {
  readonly deps: WorkDeps;
  readonly head: Head;
  /** When the invocation's time is nearly over, in milliseconds since 1970. */
  readonly limit: number;
  /** What the journal says, as far as it is known. */
  readonly view: View = emptyView();
  readonly journal: Journal;
  readonly outlet: Outlet;
  /** Called when the view has changed. */
  news: () => void = () => {};
  /** Called with what somebody else has put. */
  found: () => void = () => {};
  #beat: number;

  constructor(deps: WorkDeps, head: Head, limit: number) {
    const { store, publisher, telemetry, clock } = deps;
    const { now, timer } = clock;
    const until = () => limit;
    this.deps = { ...deps, values: patient(deps.values, { now, until, timer }) };
    this.head = head;
    this.limit = limit;
    this.#beat = head.beat;
    this.journal = new Journal({
      store,
      head,
      now,
      until,
      timer,
      took: (entry) => {
        foldEntry(this.view, entry);
        this.news();
      },
      found: () => this.found(),
    });
    const resumed = head.epoch > 1;
    this.outlet = new Outlet({
      journal: this.journal,
      publisher,
      task: head,
      telemetry,
      clock,
      resumed,
      until,
      late: (ms) => telemetry.measure("UnpublishedAge", ms * deps.timing.scale),
    });
  }

  /** A sign of life that nobody has seen yet. */
  nextBeat(): number {
    return ++this.#beat;
  }

  /**
   * Shows that the worker lives. False when the claim is no longer in force or the task is over.
   *
   * @param running the step that it is about to run, where that is worth a write
   */
  showLife(running?: string): Promise<boolean> {
    const { taskId, epoch } = this.head;
    const beat = this.nextBeat();
    return this.deps.store.beat(taskId, epoch, { beat, ...(running === undefined ? {} : { running }) });
  }

  fields(): LogFields {
    const { taskId, messageId, from, to, epoch, traceparent } = this.head;
    return { taskId, messageId, from, to, epoch, traceparent, revision: this.journal.revision };
  }
}

/**
 * After the first claim, what is stored is read, and an entry of ours keeps out whoever held the task before. Each claim
 * logs a line, the first one as little as will do: by it an invocation that dies is known as one of the task's.
 *
 * @returns how many workers in a row have died without bringing the task further
 * @throws TaskEnded, ClaimLost
 */
export async function takeOver(claim: Claim): Promise<number> {
  const { head, journal, view } = claim;
  if (head.epoch === 1) {
    claim.deps.telemetry.info("a task is taken up", { taskId: head.taskId, to: head.to, epoch: head.epoch });
    return 0;
  }
  claim.deps.telemetry.info("a task is taken over", claim.fields());
  claim.deps.telemetry.count("TasksTakenOver", 1, { runtime: head.to });
  await journal.refresh();
  const died = fruitlessClaims(head, view);
  await journal.append(() => ({ claim: true }));
  claim.outlet.kick();
  return died;
}
