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

  /** To be hooked in before any that loses something. */
  readonly hooks: Hooks = {
    before: (point) => {
      if (point.kind === "nats ack" && point.subject.includes("A2A_TASKS")) this.#ack(point);
      return undefined;
    },
    after: (point, refused) => {
      if (refused) return undefined;
      if (point.kind === "dynamodb UpdateItem claim") this.#claim(point);
      if (point.kind.startsWith("dynamodb PutItem entry")) this.#entry(point);
      return undefined;
    },
  };

  #ack({ tasks: [taskId] }: Point): void {
    if (taskId !== undefined) this.acks.push({ taskId, at: Date.now() });
  }

  #claim({ body, caller, tasks: [taskId] }: Point): void {
    const epoch = claim.safeParse(JSON.parse(body.toString())).data?.ExpressionAttributeValues[":next"].N;
    if (taskId === undefined || epoch === undefined || caller === undefined) return;
    this.claims.push({ taskId, epoch, pid: caller.pid, at: Date.now() });
  }

  #entry({ body, tasks: [taskId] }: Point): void {
    const place = entry.safeParse(JSON.parse(body.toString())).data?.Item.place.N;
    if (taskId !== undefined && place !== undefined) this.entries.push({ taskId, place, at: Date.now() });
  }
}

const number = z.object({ N: z.coerce.number().int() });
const claim = z.object({ ExpressionAttributeValues: z.object({ ":next": number }) });
const entry = z.object({ Item: z.object({ place: number }) });
