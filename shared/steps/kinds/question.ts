import { errorMessage } from "../../events/drafts.ts";
import type { Waiting } from "../../tasks/fold.ts";
import { ASKS_OPERATOR, type TaskState } from "../../wire/index.ts";
import { durable } from "../durable.ts";
import { DAY } from "../duration.ts";
import type { Done, Engine } from "../engine.ts";
import { reviveError, type StoredError } from "../failures.ts";
import { Silence } from "./silence.ts";

/** How long a question waits that names no time, in milliseconds. */
export const MAX_QUESTION_MS = 30 * DAY;

/** What the requester is told whose silence counts as an approval (docs/wire.md §9). */
const UNOPPOSED = "no objection was made";

/** What an answer comes to. */
export type Read =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "error"; readonly error: StoredError }
  | { readonly kind: "unfit"; readonly reason: string };

/** A question to the requester. */
export interface Question {
  readonly kind: "ask" | "approve";
  readonly state: TaskState;
  readonly prompt: string;
  /** How long to wait for an answer, in milliseconds. */
  readonly timeoutMs: number;
  /** What an answer, as JSON text, comes to. */
  readonly read: (text: string) => Promise<Read>;
  /** What comes of no answer. */
  readonly unanswered: StoredError;
  /**
   * Whether no answer is one after all. Then the question's time begins only once it is known to be on its stream, and
   * until then it waits without end: who was not asked has not been silent.
   */
  readonly silence?: "approves" | "fails";
  /** Whose answer alone counts; the requester's unless it is said. */
  readonly by?: "operator";
}

/**
 * Asks, and waits for the answer that `control` puts into the journal. An answer that does not fit is asked for again,
 * with the reason, until the question's time is over.
 */
export async function questionStep(engine: Engine, id: string, question: Question): Promise<Done> {
  const { view, asked, lot } = engine;
  if (view.open.has(id)) asked.add(id);
  try {
    return await answered(engine, id, question);
  } finally {
    asked.delete(id);
    lot.poke();
  }
}

async function answered(engine: Engine, id: string, question: Question): Promise<Done> {
  const { view, clock, lot } = engine;
  const silence = new Silence(engine);
  for (;;) {
    const answer = view.answers.get(id);
    const open = view.open.get(id);
    if (answer !== undefined) {
      const read = await question.read(await durable(engine.values.text(answer.value)));
      if (read.kind === "value") return { at: answer.at, value: read.value };
      if (read.kind === "error") return { at: answer.at, error: reviveError(read.error) };
      await ask(engine, id, question, { until: open?.until, reason: read.reason });
    } else if (open === undefined) await ask(engine, id, question, {});
    else if (open.until === undefined) await beginWindow(engine, id, question, open);
    else if (open.until <= clock.now()) {
      // A task whose life is over before its question's time was not given all of it.
      const approves = question.silence === "approves" && clock.now() < engine.lifeEnd;
      if (approves && !(await silence.isHeard())) {
        await lot.park({ until: silence.nextLook(), ready: () => view.answers.has(id) });
        continue;
      }
      const late = await giveUp(engine, id, question, approves);
      if (late !== undefined) return late;
    } else await lot.park({ until: open.until, ready: () => view.answers.has(id) });
  }
}

/** Puts the question as soon as no other is open or unread; one that the handler no longer asks gives way. */
async function ask(
  engine: Engine,
  id: string,
  { kind, state, prompt, timeoutMs, silence, by }: Question,
  again: { readonly until?: number | undefined; readonly reason?: string },
): Promise<void> {
  const { view, asked, lot, writer } = engine;
  asked.delete(id);
  const free = () => asked.size === 0 && (view.question === undefined || view.question.name === id);
  const abandoned = () =>
    asked.size === 0 && view.question !== undefined && !engine.called(view.question.name);
  let given = false;
  while (!free() && !(given && abandoned())) {
    await lot.park({ ready: free, stalled: abandoned });
    given = true;
  }
  asked.add(id);
  await engine.begin(id);
  const until = again.until ?? (silence === "approves" ? undefined : endOf(engine, timeoutMs));
  const content = again.reason === undefined ? prompt : `${errorMessage(again.reason)}\n\n${prompt}`;
  await durable(
    writer.add({
      open: { name: id, kind, until, ...(by && { by }) },
      asks: true,
      events: [{ kind: "status", state, content, ...(by && { data: ASKS_OPERATOR }) }],
    }),
  );
  engine.countQuestion();
}

/** When a question that is put now is over. */
function endOf({ clock, lifeEnd }: Engine, timeoutMs: number): number {
  return Math.min(clock.now() + Math.min(timeoutMs, MAX_QUESTION_MS), lifeEnd);
}

/** Once the question is on its stream, its time begins; while it is not, another worker looks again. */
async function beginWindow(
  engine: Engine,
  id: string,
  { timeoutMs }: Question,
  { since: _, ...open }: Waiting,
): Promise<void> {
  const { view, clock, lot, writer } = engine;
  if (!(await engine.published())) return await lot.park({ until: clock.now(), elsewhere: true });
  await engine.still();
  await durable(
    writer.add({
      open: { ...open, until: endOf(engine, timeoutMs) },
      unless: () => view.answers.has(id) || view.open.get(id)?.asked !== open.asked,
    }),
  );
}

/**
 * Stores that nobody answered, so that a late answer changes nothing; unless one has come meanwhile: what was put before
 * is found on the way, for an entry is put behind all others.
 */
async function giveUp(
  engine: Engine,
  id: string,
  question: Question,
  approved: boolean,
): Promise<Done | undefined> {
  const { view } = engine;
  const { kind } = question;
  const error = approved ? undefined : question.unanswered;
  const asked = view.open.get(id)?.since ?? 0;
  const ms = Math.max(0, Math.round(engine.clock.now() - asked));
  const at = await durable(
    engine.writer.add({
      step: { name: id, kind, value: { text: "" }, ms, ...(error && { error }) },
      ...(approved && { events: [{ kind: "status", state: "TASK_STATE_WORKING", content: UNOPPOSED }] }),
      unless: () => view.answers.has(id),
    }),
  );
  if (view.answers.has(id)) return undefined;
  return error === undefined ? { at, value: undefined } : { at, error: reviveError(error) };
}
