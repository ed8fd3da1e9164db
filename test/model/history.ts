import { isDeepStrictEqual } from "node:util";
import * as z from "zod";

const event = z.object({ task: z.string(), rev: z.number(), kind: z.string(), state: z.string() });
const entry = z.object({
  epoch: z.number(),
  kind: z.string(),
  what: z.string(),
  rev: z.number(),
  end: z.string(),
});
const head = z.object({
  state: z.string(),
  epoch: z.number(),
  beat: z.number(),
  published: z.number(),
  due: z.number(),
});
const hint = z.object({ task: z.string(), epoch: z.number(), beat: z.number() });
const process = z.object({
  pc: z.string(),
  item: z.string(),
  log: z.array(z.unknown()),
  up: z.number(),
  unsure: z.boolean(),
});
const state = z.object({
  world: z.object({
    heads: z.map(z.string(), head),
    journals: z.map(z.string(), z.array(entry)),
    stream: z.array(event),
    window: z.array(z.unknown()),
    hints: z.array(hint),
    unacked: z.array(z.string()),
    procs: z.map(z.string(), process),
  }),
  frozen: z.array(z.string()),
  calm: z.number(),
});
type State = z.infer<typeof state>;

/** Values of the Informal Trace Format (https://apalache-mc.org/docs/adr/015adr-trace.html) as those of JavaScript. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const fields = new Map<string, unknown>(Object.entries(value));
  if (fields.has("#bigint")) return Number(fields.get("#bigint"));
  if (fields.has("#set")) return plain(fields.get("#set"));
  if (fields.has("#map"))
    return new Map(z.array(z.tuple([z.string(), z.unknown()])).parse(plain(fields.get("#map"))));
  return Object.fromEntries([...fields].map(([name, field]) => [name, plain(field)]));
}

/**
 * A history as a person reads it: one line per thing that has happened, with what it has changed.
 *
 * @param trace in the Informal Trace Format
 */
export function readHistory(trace: string): string[] {
  const { states } = z.object({ states: z.array(z.unknown()) }).parse(JSON.parse(trace));
  const all = states.map((one) => state.parse(plain(one)));
  return all.flatMap((now, index) => {
    const before = all[index - 1];
    return before === undefined
      ? [`published: ${now.world.unacked.join(", ")}`]
      : [`${String(index).padStart(3)}  ${changes(before, now).join("; ") || "nothing to see"}`];
  });
}

function changes(before: State, now: State): string[] {
  return [
    ...(now.calm > before.calm ? ["everybody takes a turn"] : []),
    ...now.frozen.filter((name) => !before.frozen.includes(name)).map((name) => `${name} stands still`),
    ...before.frozen.filter((name) => !now.frozen.includes(name)).map((name) => `${name} goes on`),
    ...processes(before, now),
    ...heads(before, now),
    ...entries(before, now),
    ...now.world.stream
      .slice(before.world.stream.length)
      .map(({ task, rev, kind, state }) => `the stream gets ${task} ${rev} ${kind} (${state})`),
    ...(now.world.window.length < before.world.window.length ? ["the stream forgets ids"] : []),
    ...hints(before, now),
    ...before.world.unacked
      .filter((item) => !now.world.unacked.includes(item))
      .map((item) => `${item} is acknowledged`),
  ];
}

function processes(before: State, now: State): string[] {
  return [...now.world.procs].flatMap(([name, is]) => {
    const was = before.world.procs.get(name);
    if (was === undefined || isDeepStrictEqual(was, is)) return [];
    const who = is.item === "" ? name : `${name} (${is.item})`;
    if (was.pc !== is.pc) return [`${who}: ${was.pc} → ${is.pc}`];
    return [
      `${who}: knows ${is.log.length} entries, published ${is.unsure ? "perhaps more than " : ""}${is.up}`,
    ];
  });
}

function heads(before: State, now: State): string[] {
  return [...now.world.heads].flatMap(([task, head]) => {
    if (isDeepStrictEqual(before.world.heads.get(task), head)) return [];
    const { state, epoch, beat, published, due } = head;
    const rest = `epoch ${epoch}, beat ${beat}, published ${published}, ${due > 0 ? "due" : "not due"}`;
    return [`head of ${task}: ${state}, ${rest}`];
  });
}

function entries(before: State, now: State): string[] {
  return [...now.world.journals].flatMap(([task, journal]) =>
    journal.flatMap((entry, index) => {
      if (isDeepStrictEqual(before.world.journals.get(task)?.[index], entry)) return [];
      const { kind, what, epoch, rev, end } = entry;
      const name = [kind, what, end].filter((word) => word !== "").join(" ");
      return [`journal of ${task} gets ${index + 1}: ${name}, epoch ${epoch}, revision ${rev}`];
    }),
  );
}

function hints(before: State, now: State): string[] {
  const grown = now.world.hints.length - before.world.hints.length;
  if (grown === 0) return [];
  if (grown < 0) return ["a hint is off the queue"];
  return now.world.hints
    .slice(-grown)
    .map(({ task, epoch, beat }) => `a hint at ${task}, epoch ${epoch}, beat ${beat}`);
}
