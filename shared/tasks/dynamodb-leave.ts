import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { throughConflicts } from "./conflicts.ts";
import { found, type HeadUpdate, toHead } from "./dynamodb-head.ts";
import { countDown, keysOf, type Part, type TableAccess, transact } from "./dynamodb-transaction.ts";
import type { Head } from "./items.ts";
import type { Held } from "./slots.ts";
import type { Left } from "./store.ts";

/** Whoever finds that a slot has changed hands looks again, so often at the most. */
const MAX_TURNS = 5;
export const NOBODY_WAITS = "(attribute_not_exists(queued) OR queued = :zero)";

/**
 * Updates a head, and in the same transaction gives up the slot that its task holds, or its place in the line.
 *
 * @param held what is believed of the slot; if it is otherwise, the head that is there counts
 */
export async function leave(access: TableAccess, held: Held, update: HeadUpdate): Promise<Left> {
  let believed = held;
  for (let turn = 1; turn <= MAX_TURNS; turn++) {
    const outcome = await tryToLeave(access, believed, update);
    if ("left" in outcome) return outcome;
    const { there } = outcome;
    // The slot is as it was believed to be: it is the update's own condition that does not hold.
    if (there === undefined || (there.slot === believed.slot && there.queued === believed.queued))
      return { left: false, waited: false };
    believed = there;
  }
  throw new Error(`the slot of task ${held.taskId} has changed hands ${MAX_TURNS} times meanwhile`);
}

/** Leaves as is believed, or gives the head that is there instead. */
async function tryToLeave(
  access: TableAccess,
  held: Held,
  update: HeadUpdate,
): Promise<Left | { readonly there: Head | undefined }> {
  const own = headUpdate(access, held, update);
  if (held.slot !== true && held.queued === undefined) {
    try {
      await throughConflicts(() => access.client.send(new UpdateCommand(own)), access.pause);
      return { left: true, waited: false };
    } catch (error) {
      const item = found(error);
      return { there: item && toHead(item) };
    }
  }
  // The common way needs no look at the line: the condition says that nobody is in it.
  for (const unlessAwaited of held.queued === undefined ? [true, false] : [false]) {
    const refused = await transact(access, [{ Update: own }, ...giveUp(access, held, unlessAwaited)]);
    if (refused === undefined) return { left: true, waited: !unlessAwaited };
    const [head] = refused;
    if (head?.held !== true) return { there: head?.item && toHead(head.item) };
  }
  throw new Error(`the slot of task ${held.taskId} could not be given up`);
}

/** The update of the head, which then says neither that it holds a slot nor that it waits for one. */
function headUpdate(access: TableAccess, { taskId, slot, queued }: Held, update: HeadUpdate) {
  const { set, remove, condition, names, values } = update;
  const gives = slot === true ? ["slot"] : queued === undefined ? [] : ["queued"];
  return {
    ...keysOf(access).head(taskId),
    UpdateExpression: `SET ${set.join(", ")} REMOVE ${[...remove, ...gives].join(", ")}`,
    ConditionExpression: [
      condition,
      slot === true ? "slot = :slot" : "attribute_not_exists(slot)",
      queued === undefined ? "attribute_not_exists(queued)" : "queued = :queued",
    ].join(" AND "),
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: {
      ...values,
      ...(slot === true ? { ":slot": true } : {}),
      ...(queued === undefined ? {} : { ":queued": queued }),
    },
    ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
  };
}

/** What else is to be written: a slot is free, or a place in the line. */
function giveUp(access: TableAccess, { taskId, to, queued }: Held, unlessAwaited: boolean): Part[] {
  const keys = keysOf(access);
  if (queued !== undefined) return [{ Delete: keys.place(to, queued) }, countDown(access, to)];
  return [
    {
      Update: {
        ...keys.slots(to),
        UpdateExpression: "DELETE live :task",
        ...(unlessAwaited ? { ConditionExpression: NOBODY_WAITS } : {}),
        ExpressionAttributeValues: {
          ":task": new Set([taskId]),
          ...(unlessAwaited ? { ":zero": 0 } : {}),
        },
      },
    },
  ];
}
