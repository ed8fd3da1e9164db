import { fold } from "../../../../shared/tasks/fold.ts";
import { isTerminal } from "../../../../shared/wire/index.ts";
import type { Ledger, TaskRecord, Violation } from "../ledger.ts";
import { toldOf } from "./events.ts";

/** Claims in a row that die before a task is given up (docs/tasks.md, takeovers). */
const GIVEN_UP_AFTER = 5;

/** Whether a task waits for a person who has not answered. */
export function waitsForPerson({ entries, controls, head, mayWait }: TaskRecord): boolean {
  const { question } = fold(entries);
  if (!mayWait || head === undefined || question?.asked === undefined) return false;
  const { asked } = question;
  return !controls.some(({ good, kind, revision }) => good && kind.endsWith("_reply") && revision > asked);
}

/** What has become of a task: `no-loss`, `outcome`, `acked-after`. */
export function checkFate(task: TaskRecord, ledger: Ledger): Violation[] {
  const { taskId, published, acked, events } = task;
  const found: Violation[] = [];
  const violation = (invariant: Violation["invariant"], what: string) =>
    void found.push({ invariant, taskId, what });
  const [first] = events;
  for (const at of acked)
    if (first === undefined || first.at > at)
      violation(
        "acked-after",
        `its message was acknowledged ${first === undefined ? "without an answer" : `${first.at - at} ms before its answer`}`,
      );

  if (ledger.stuck.includes(taskId)) violation("no-loss", "it did not come to rest in time");

  const end = toldOf(task).find(({ event }) => isTerminal(event.state))?.event;
  if (end !== undefined) {
    const said = [end.state.replace("TASK_STATE_", ""), end.error?.code].filter(Boolean).join(" ");
    const gaveUp = said === "FAILED internal" && givenUp(task, ledger);
    if (!task.ends.includes(said) && !gaveUp)
      violation(
        "outcome",
        `expected ${task.ends.join(" or ") || "no end"}, got ${said}: ${end.error?.message ?? end.content}`,
      );
    return found;
  }
  if (waitsForPerson(task) || published === 0) return found;
  if (
    ledger.dead.some((letter) => letter.taskId === taskId && letter.buried && letter.queue.includes("tasks"))
  )
    return found;
  const where = task.onStream ? "" : "; THE STREAM HAS LOST ITS MESSAGE";
  violation(
    "no-loss",
    events.length === 0 ? `it was never answered${where}` : "it has no end, and waits for nobody",
  );
  return found;
}

/** Whether a task was given up because the adversary has killed enough of its workers. */
function givenUp({ claims, events }: TaskRecord, { troubles }: Ledger): boolean {
  if (!events.some(({ body }) => body.includes("the worker died"))) return false;
  const died = claims.filter(({ pid, at }) =>
    troubles.some(
      ({ whose, to = Number.POSITIVE_INFINITY }) => (whose === pid || whose === "dynamodb") && to >= at,
    ),
  );
  return died.length >= GIVEN_UP_AFTER;
}
