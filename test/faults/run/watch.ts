import * as z from "zod";
import type { Hooks, Point } from "../../support/proxy/points.ts";

/** A claim as it went by: which process, when on this machine's clock. */
export interface ClaimSeen {
  readonly taskId: string;
  readonly epoch: number;
  readonly pid: number;
  readonly at: number;
}

/** An entry that the table has confirmed. */
export interface EntrySeen {
  readonly taskId: string;
  readonly place: number;
  readonly at: number;
}

/** A message of the stream of tasks that was acknowledged for good. */
export interface AckSeen {
  readonly taskId: string;
  readonly at: number;
}

/** What goes by at the proxies and stands nowhere afterwards. */
export class Watch {
  readonly claims: ClaimSeen[] = [];
  readonly entries: EntrySeen[] = [];
  readonly acks: AckSeen[] = [];
  /** Of each agent with a limit, the most tasks that were seen to hold a slot at once. */
  readonly mostLive = new Map<string, number>();
  /** The tasks that hold a slot, by agent: from their claim's confirmation until they ask to give it up. */
  readonly #live = new Map<string, Set<string>>();

  /** To be hooked in before any that loses something. */
  readonly hooks: Hooks = {
    before: (point) => {
      if (point.kind === "nats ack" && point.subject.includes("A2A_TASKS")) this.#ack(point);
      if (point.kind.startsWith("dynamodb TransactWriteItems")) this.#slots(point, "DELETE live");
      return undefined;
    },
    after: (point, refused) => {
      if (refused) return undefined;
      if (point.kind.startsWith("dynamodb") && point.kind.endsWith("claim")) this.#claim(point);
      if (point.kind.startsWith("dynamodb TransactWriteItems")) this.#slots(point, "ADD live");
      if (point.kind.startsWith("dynamodb PutItem entry")) this.#entry(point);
      return undefined;
    },
  };

  #ack({ tasks: [taskId] }: Point): void {
    if (taskId !== undefined) this.acks.push({ taskId, at: Date.now() });
  }

  #claim({ body, caller, tasks: [taskId] }: Point): void {
    const read: unknown = JSON.parse(body.toString());
    const updates = transaction.safeParse(read).data?.TransactItems.map(({ Update }) => Update) ?? [read];
    const [epoch] = updates.flatMap(
      (update) => claim.safeParse(update).data?.ExpressionAttributeValues[":next"].N ?? [],
    );
    if (taskId === undefined || epoch === undefined || caller === undefined) return;
    this.claims.push({ taskId, epoch, pid: caller.pid, at: Date.now() });
  }

  #entry({ body, tasks: [taskId] }: Point): void {
    const place = entry.safeParse(JSON.parse(body.toString())).data?.Item.place.N;
    if (taskId !== undefined && place !== undefined) this.entries.push({ taskId, place, at: Date.now() });
  }

  /** Notes that a task has got a slot, or is about to give it up. */
  #slots({ body, tasks: [taskId] }: Point, change: "ADD live" | "DELETE live"): void {
    if (taskId === undefined) return;
    const { TransactItems = [] } = transaction.safeParse(JSON.parse(body.toString())).data ?? {};
    for (const { Update } of TransactItems) {
      const { Key, UpdateExpression } = slotsUpdate.safeParse(Update).data ?? {};
      if (Key === undefined || !UpdateExpression?.includes(change)) continue;
      const runtime = Key.pk.S.replace("slots#", "");
      const live = this.#live.get(runtime) ?? new Set();
      this.#live.set(runtime, live);
      if (change === "ADD live") live.add(taskId);
      else live.delete(taskId);
      this.mostLive.set(runtime, Math.max(this.mostLive.get(runtime) ?? 0, live.size));
    }
  }
}

const number = z.object({ N: z.coerce.number().int() });
const claim = z.object({ ExpressionAttributeValues: z.object({ ":next": number }) });
const entry = z.object({ Item: z.object({ place: number }) });
const transaction = z.object({ TransactItems: z.array(z.object({ Update: z.unknown() })) });
const slotsUpdate = z.object({
  Key: z.object({ pk: z.object({ S: z.string().startsWith("slots#") }) }),
  UpdateExpression: z.string(),
});
