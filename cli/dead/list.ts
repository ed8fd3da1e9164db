import type { DeadOptions } from "../dead.ts";
import { EXIT } from "../errors.ts";
import type { LogLine } from "../logs/line.ts";
import { openLogs } from "../logs/source.ts";
import { type Output, processOutput } from "../output.ts";
import type { Place } from "../place.ts";
import { reasonOf } from "../place.ts";
import { currentHome } from "../session.ts";
import { table } from "../table.ts";
import { cleanLine, durationText } from "../text.ts";
import type { Look } from "./browse.ts";
import type { Letter } from "./letter.ts";
import { openDeadLetters } from "./open.ts";
import { reasonOfLine, troubleOf } from "./why.ts";

const HEAD = ["ID", "QUEUE", "TASK OR MESSAGE", "FROM → TO", "AGE", "RECEIVES", "WHY"];

/** How far SQS's clock may be ahead of a function's, in milliseconds. */
export const CLOCKS_MS = 60_000;

/** `sluice dead list`. */
export async function list(given: DeadOptions): Promise<number> {
  const out = processOutput(given.json);
  await using dead = await openDeadLetters(currentHome(given), given);
  out.waitingFor("looking at the dead letters");
  const look = await dead.look();
  const lines = look.letters.length === 0 ? [] : await troubles(dead.place, look.letters, out);
  out.done();
  const now = Date.now();
  const whys = look.letters.map((letter) => {
    const line = troubleOf(letter, lines);
    return line === undefined ? undefined : reasonOfLine(line);
  });
  look.letters.forEach((letter, at) => {
    out.record(recordOf(letter, whys[at]));
  });
  const rows = look.letters.map((letter, at) => rowOf(letter, whys[at], now));
  if (rows.length > 0) for (const line of table(HEAD, rows, out.width)) out.line(line);
  else out.line(noneText(look));
  noteRest(look, out);
  return EXIT.ok;
}

/** What the functions have said went wrong since the oldest letter was sent; nothing where the logs cannot be had. */
async function troubles(place: Place, letters: readonly Letter[], out: Output): Promise<LogLine[]> {
  try {
    using logs = await openLogs(place);
    const since = Math.min(...letters.map(({ sentAt }) => sentAt)) - CLOCKS_MS;
    return await logs.tail({ of: "trouble", since }).next();
  } catch (error) {
    out.note(`the logs cannot be read, so nothing says why: ${cleanLine(reasonOf(error))}`);
    return [];
  }
}

/** What is said where a look has found nothing. */
export function noneText({ hidden }: Pick<Look, "hidden">): string {
  return hidden > 0 ? "no dead letter can be seen now" : "no dead letters";
}

/** Says what a look has left out. */
export function noteRest({ hidden, more }: Pick<Look, "hidden" | "more">, out: Output): void {
  if (hidden > 0)
    out.note(
      `${hidden} more ${hidden === 1 ? "is" : "are"} hidden for up to a minute, by another look at the dead letters`,
    );
  if (more) out.note("there are more; --queue looks at one queue alone");
}

/** A letter as JSON; what there is none of is `null`. */
export function recordOf(letter: Letter, why: string | undefined): Record<string, unknown> {
  const { id, queue, task, message, from, to, sentAt, receives, forwarded } = letter;
  return {
    id,
    queue: queue.name,
    task: task ?? null,
    message: message ?? null,
    from: from ?? null,
    to: to ?? null,
    sentAt: new Date(sentAt).toISOString(),
    receives,
    stream: forwarded?.stream ?? null,
    seq: forwarded?.seq ?? null,
    why: why ?? null,
  };
}

function rowOf(letter: Letter, why: string | undefined, now: number): string[] {
  const { id, queue, task, message, from = "-", to = "-", sentAt, receives } = letter;
  return [
    id,
    queue.name,
    cleanLine(task ?? message ?? "-"),
    from === "-" && to === "-" ? "-" : `${cleanLine(from)} → ${cleanLine(to)}`,
    durationText(Math.max(0, now - sentAt)),
    String(receives),
    why ?? "no log tells",
  ];
}
