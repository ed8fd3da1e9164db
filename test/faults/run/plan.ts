import * as z from "zod";
import type { Chance } from "./chance.ts";

/** What an adversary does, and when: a plan is drawn from a seed, printed, kept, and can be played again. */

const ms = z.number().min(0);
const part = z.enum(["dynamodb", "sqs", "s3", "nats"]);

/** The functions' names, as in `infra/bundle.ts`; one that the host does not run is left alone. */
const FUNCTIONS = ["work", "admit", "bridge", "control", "sweep", "events", "cards"] as const;
const EFFECTS = [
  "delay",
  "drop",
  "unanswered",
  "twice",
  "error",
  "throttle",
  "conflict",
  "unreachable",
] as const;
const SERVERS = ["dynamodb", "nats", "host"] as const;

export const action = z.discriminatedUnion("kind", [
  /** `kill -9` of one process of a function, whatever it does. */
  z.object({ kind: z.literal("kill"), at: ms, name: z.enum(FUNCTIONS) }),
  /** `kill -9` of the function that makes the next write of this kind, before its part has seen it, or before it hears. */
  z.object({
    kind: z.literal("kill at write"),
    at: ms,
    write: z.string(),
    when: z.enum(["before", "after"]),
  }),
  z.object({ kind: z.literal("kill server"), at: ms, name: z.enum(SERVERS), downMs: ms }),
  /** SIGSTOP, and later SIGCONT. */
  z.object({ kind: z.literal("freeze"), at: ms, name: z.enum([...FUNCTIONS, ...SERVERS]), forMs: ms }),
  /** What happens to a share of the requests between functions and a part. */
  z.object({
    kind: z.literal("weather"),
    at: ms,
    part,
    effect: z.enum(EFFECTS),
    share: z.number(),
    forMs: ms,
  }),
  z.object({ kind: z.literal("full disk"), at: ms, name: z.enum(SERVERS), forMs: ms }),
  /** Published tasks once more, under other ids of their messages. */
  z.object({ kind: z.literal("repeat"), at: ms, count: z.int() }),
  /** Each message on its way through SQS is also given back to JetStream, which delivers it again at once. */
  z.object({ kind: z.literal("nak storm"), at: ms, forMs: ms }),
]);
export type Action = z.infer<typeof action>;

/** How often each comes in a minute, on average. */
const PER_MINUTE = {
  "kill at write": 8,
  kill: 4.5,
  "kill server": 1.5,
  freeze: 2.5,
  weather: 6,
  "full disk": 0.8,
  repeat: 2,
  "nak storm": 0.7,
} as const;
type Kind = keyof typeof PER_MINUTE;

/** What a function writes, and is worth dying at. The beginning of a point's kind (test/support/proxy/points.ts). */
const WRITES = [
  "dynamodb PutItem head",
  "dynamodb PutItem entry steps",
  "dynamodb PutItem entry events+end",
  "dynamodb PutItem entry control",
  "dynamodb PutItem entry claim",
  "dynamodb UpdateItem claim",
  "dynamodb UpdateItem beat",
  "dynamodb UpdateItem settled",
  "dynamodb UpdateItem",
  "dynamodb TransactWriteItems claim",
  "dynamodb TransactWriteItems queue",
  "dynamodb TransactWriteItems settled",
  "dynamodb PutItem entry heard",
  "dynamodb PutItem",
  "nats publish accepted",
  "nats publish status",
  "nats publish artifact",
  "nats publish result",
  "nats publish task",
  "nats publish",
  "nats card",
  "nats object",
  "nats ack",
  "nats pull",
  "sqs send tasks",
  "sqs send controls",
  "sqs send events",
  "sqs send work",
  "s3 PUT value",
] as const;

/** Nothing is done at the very beginning, nor so late that it would reach beyond the end. */
const QUIET_MS = { first: 4_000, last: 6_000 };
/** A broker restart that takes longer than every timeout of its clients, once in a run that has room for it. */
const LONG_RESTART_MS = 30_000;
const ROOM_FOR_LONG_MS = 180_000;

const AWS_EFFECTS = {
  delay: 2,
  drop: 2,
  unanswered: 4,
  twice: 1,
  error: 2,
  throttle: 2,
  conflict: 1,
  unreachable: 1,
};
/** NATS refuses nothing that it takes. */
const NATS_EFFECTS = { ...AWS_EFFECTS, error: 0, throttle: 0, conflict: 0 };

/** Draws a plan for so many milliseconds, in the order of its times. */
export function drawPlan(chance: Chance, lengthMs: number): Action[] {
  const from = Math.min(QUIET_MS.first, lengthMs / 4);
  const to = Math.max(from, lengthMs - QUIET_MS.last);
  const at = () => chance.int(from, to);
  const minutes = (to - from) / 60_000;
  const kinds = Object.keys(PER_MINUTE) as Kind[]; // The keys of that constant.
  const plan = kinds.flatMap((kind) =>
    Array.from({ length: Math.max(1, Math.round(PER_MINUTE[kind] * minutes)) }, () =>
      drawAction(kind, at(), chance),
    ),
  );
  if (lengthMs >= ROOM_FOR_LONG_MS)
    plan.push({
      kind: "kill server",
      at: chance.int(from, to - LONG_RESTART_MS),
      name: "nats",
      downMs: LONG_RESTART_MS,
    });
  return plan.sort((a, b) => a.at - b.at);
}

function drawAction(kind: Kind, at: number, chance: Chance): Action {
  switch (kind) {
    case "kill":
      return {
        kind,
        at,
        name: chance.weighted({ work: 4, admit: 2, bridge: 2, control: 1, sweep: 1, events: 1, cards: 1 }),
      };
    case "kill at write":
      return { kind, at, write: chance.pick(WRITES), when: chance.pick(["before", "after"]) };
    case "kill server":
      return {
        kind,
        at,
        name: chance.weighted({ dynamodb: 4, nats: 3, host: 3 }),
        downMs: chance.pick([0, 0, 500, 2_000]),
      };
    case "freeze":
      // Longer than a lease, or shorter.
      return {
        kind,
        at,
        name: chance.weighted({
          work: 8,
          admit: 2,
          bridge: 1,
          control: 1,
          sweep: 1,
          events: 1,
          cards: 1,
          dynamodb: 1,
          nats: 1,
          host: 1,
        }),
        forMs: chance.int(500, 8_000),
      };
    case "weather": {
      const of = chance.weighted({ dynamodb: 5, sqs: 2, s3: 1, nats: 4 });
      const effect = chance.weighted(of === "nats" ? NATS_EFFECTS : AWS_EFFECTS);
      return {
        kind,
        at,
        part: of,
        effect,
        share: chance.pick([0.1, 0.3, 0.6, 1]),
        forMs: chance.int(500, 5_000),
      };
    }
    case "full disk":
      return { kind, at, name: chance.pick(SERVERS), forMs: chance.int(500, 3_000) };
    case "repeat":
      return { kind, at, count: chance.int(1, 10) };
    case "nak storm":
      return { kind, at, forMs: chance.int(500, 3_000) };
  }
}

/** One line of a printed plan. */
export function describe(of: Action): string {
  const { kind, at, ...rest } = of;
  const details = Object.entries(rest).map(([name, value]) => (name === "name" ? value : `${name} ${value}`));
  return `${(at / 1_000).toFixed(1).padStart(6)} s  ${kind} ${details.join(", ")}`;
}
