import type { Op, OwnOp, Program } from "../../fixtures/faults/agents/parts/program.ts";
import type { Chance } from "./chance.ts";

/** How a person takes a question. */
export type Manner = "at once" | "late" | "twice" | "wrongly first" | "never" | "denies";

/** A task before it is published: what it asks for, what becomes of it on the way, and how it may end. */
export interface Spec {
  readonly messageId: string;
  /** What kind of task it is, for people. */
  readonly what: string;
  readonly agent: string;
  readonly skill: string;
  readonly a2a: unknown;
  /** Questions' names, and how each is taken. */
  readonly persons: Readonly<Record<string, Manner>>;
  /** The ends that it may come to: state and, if there is one, the error's code. */
  readonly ends: readonly string[];
  /** Whether it may wait for a person when all is over. */
  readonly mayWait: boolean;
  /** Milliseconds after its publication. */
  readonly cancelAfterMs?: number;
  readonly statusAfterMs?: number;
  /** It is published again, as it is or with another body, under another id of the message. */
  readonly again?: { readonly afterMs: number; readonly otherBody: boolean };
}

/** What there is of each kind, in so many tasks of a hundred. */
const KINDS = {
  sequential: 30,
  parallel: 12,
  artifact: 9,
  slow: 8,
  sleeper: 8,
  asker: 9,
  approver: 7,
  flaky: 6,
  fatal: 3,
  large: 4,
  invalid: 2,
  rejected: 2,
  delegated: 10,
};
type Kind = keyof typeof KINDS;

const AGENTS = { worker: 4, narrow: 1 };
const MANNERS = { "at once": 4, late: 3, twice: 3, "wrongly first": 2, never: 1 } as const;

const COMPLETED = "COMPLETED";

/** The tasks of a run, one after the other, the same for the same source of chance. */
export function* drawSpecs(chance: Chance, fileOf: (messageId: string) => string): Generator<Spec> {
  for (let n = 1; ; n++) {
    const own = chance.fork(n);
    const messageId = `msg_${n}_${own.int(0, 0xffffff).toString(16)}`;
    yield { messageId, ...drawSpec(own, fileOf(messageId)) };
  }
}

function drawSpec(chance: Chance, file: string): Omit<Spec, "messageId"> {
  const what = chance.weighted(KINDS);
  const agent = what === "delegated" ? "lead" : chance.weighted(AGENTS);
  const base = { what, agent, skill: "task", persons: {}, mayWait: false };
  if (what === "invalid") return { ...base, a2a: { text: "no program" }, ends: ["FAILED invalid_envelope"] };
  if (what === "rejected")
    return { ...base, skill: "juggle", a2a: "whatever", ends: ["REJECTED unknown_skill"], ...again(chance) };
  const { ops, ...asked } = what === "delegated" ? delegation(chance, file) : programOf(what, chance);
  const pad = what === "large" ? "p".repeat(chance.pick([2_000, 40_000, 60_000, 300_000])) : "";
  const a2a: { parts: { data: Program }[] } = { parts: [{ data: { file, ops, pad } }] };
  const interrupted = interruptions(chance);
  const ends = asked.ends ?? [COMPLETED];
  return {
    ...base,
    a2a,
    persons: asked.persons ?? {},
    mayWait: asked.mayWait ?? false,
    ends: interrupted.cancelAfterMs === undefined ? ends : [...ends, "CANCELED canceled"],
    ...interrupted,
    ...again(chance),
  };
}

function interruptions(chance: Chance): Pick<Spec, "cancelAfterMs" | "statusAfterMs"> {
  return {
    ...(chance.happens(0.1) && { cancelAfterMs: chance.int(0, 6_000) }),
    ...(chance.happens(0.06) && { statusAfterMs: chance.int(0, 6_000) }),
  };
}

function again(chance: Chance): Pick<Spec, "again"> {
  if (!chance.happens(0.08)) return {};
  return { again: { afterMs: chance.int(0, 5_000), otherBody: chance.happens(0.3) } };
}

type Asked<O extends Op = OwnOp> = { ops: O[] } & Partial<Pick<Spec, "persons" | "ends" | "mayWait">>;

/** Of what is handed on: a child that asks somebody is at its end, as far as its parent goes (docs/tasks.md, delegation). */
const CHILDREN = {
  sequential: 6,
  parallel: 1,
  artifact: 1,
  slow: 2,
  sleeper: 1,
  flaky: 1,
  fatal: 1,
  asker: 1,
} as const;
/** The step of a program that hands on. */
export const HAND_ON = "hand on";
/** Where a child's steps leave their lines. */
export const childFile = (file: string): string => file.replace(/(\.jsonl)?$/, "-child.jsonl");

function delegation(chance: Chance, file: string): Asked<Op> {
  const what = chance.weighted(CHILDREN);
  const { ops, ends } = programOf(what, chance);
  const to = `storm-${chance.weighted(AGENTS)}`;
  const program = { file: childFile(file), pad: "", ops };
  return {
    ops: [run("before", chance), { do: "delegate", name: HAND_ON, to, program }, run("after", chance)],
    ends: what === "asker" ? ["FAILED internal"] : (ends ?? [COMPLETED]),
  };
}

function programOf(what: Exclude<Kind, "delegated">, chance: Chance): Asked {
  switch (what) {
    case "parallel": {
      const keys = chance.int(2, 6);
      return { ops: [run("first", chance), { do: "each", name: "beside", keys, ms: chance.int(0, 200) }] };
    }
    case "artifact":
      return { ops: [run("make", chance), { do: "artifact", name: "thing", bytes: chance.int(0, 60_000) }] };
    case "slow":
      return { ops: runs(chance, 400, 2_500) };
    case "sleeper":
      // Up to five seconds it is waited for, beyond it the task is left (docs/tasks.md, suspension).
      return {
        ops: [
          run("before", chance),
          { do: "sleep", name: "sleep", ms: chance.int(1_000, 9_000) },
          run("after", chance),
        ],
      };
    case "asker":
      return question("ask", chance);
    case "approver":
      return question("approve", chance);
    case "flaky":
      return { ops: [{ do: "flaky", name: "flaky", failures: chance.int(1, 2) }, run("then", chance)] };
    case "fatal": {
      const last: OwnOp = chance.happens(0.5) ? { do: "fatal", name: "fatal" } : { do: "throw" };
      return { ops: [run("first", chance), last], ends: ["FAILED internal"] };
    }
    case "large":
      return { ops: [{ do: "run", name: "large", ms: 0, bytes: chance.pick([1_000, 40_000, 150_000]) }] };
    default:
      return { ops: runs(chance, 0, 100) };
  }
}

function run(name: string, chance: Chance): OwnOp {
  return { do: "run", name, ms: chance.int(0, 60), bytes: 0 };
}

function runs(chance: Chance, fromMs: number, toMs: number): OwnOp[] {
  return Array.from({ length: chance.int(1, 4) }, (_, n): OwnOp[] => [
    { do: "run", name: `step ${n + 1}`, ms: chance.int(fromMs, toMs), bytes: 0 },
    { do: "status", text: `step ${n + 1} is done` },
  ]).flat();
}

function question(kind: "ask" | "approve", chance: Chance): Asked {
  const name = kind === "ask" ? "colour" : "permit";
  const manner: Manner =
    kind === "approve" && chance.happens(0.2) ? "denies" : chance.weighted<keyof typeof MANNERS>(MANNERS);
  // Without a time of its own the question waits for as long as the task may live.
  const timeoutMs = manner === "never" && chance.happens(0.6) ? chance.int(1_000, 10_000) : undefined;
  const never = timeoutMs === undefined ? [] : ["FAILED timeout"];
  const ends = { never, denies: ["FAILED auth_not_satisfied"] };
  return {
    ops: [
      run("first", chance),
      { do: kind, name, ...(timeoutMs !== undefined && { timeoutMs }) },
      run("then", chance),
    ],
    persons: { [name]: manner },
    ends: manner === "never" || manner === "denies" ? ends[manner] : [COMPLETED],
    mayWait: manner === "never" && timeoutMs === undefined,
  };
}
