import type { DeadOptions } from "../dead.ts";
import { EXIT } from "../errors.ts";
import type { LogLine } from "../logs/line.ts";
import { openLogs } from "../logs/source.ts";
import { linesAbout } from "../logs/task.ts";
import { type Output, processOutput } from "../output.ts";
import { reach, reasonOf } from "../place.ts";
import { stateText } from "../render.ts";
import { withPlace } from "../repeat.ts";
import { currentHome } from "../session.ts";
import { clean, cleanLine, durationText, localTime } from "../text.ts";
import type { Letter } from "./letter.ts";
import { CLOCKS_MS, recordOf } from "./list.ts";
import { type DeadLetters, meantLetter, openDeadLetters } from "./open.ts";
import { reasonOfLine, troubleOf } from "./why.ts";

/** Of a body a terminal gets this many characters. */
const MAX_BODY = 4_000;
const LINES_SHOWN = 5;

/** What the logs tell of a letter. */
interface Told {
  readonly where: string;
  readonly lines: readonly LogLine[];
}

/** `sluice dead show`. */
export async function show(id: string, given: DeadOptions): Promise<number> {
  const out = processOutput(given.json);
  await using dead = await openDeadLetters(currentHome(given), given);
  out.waitingFor("looking at the dead letters");
  const letter = meantLetter((await dead.look()).letters, id);
  const { task, forwarded } = letter;
  const head = task === undefined ? undefined : await reach(dead.place.label, dead.store.head(task));
  const onStream = forwarded === undefined ? undefined : await dead.onStream(forwarded);
  const told = await tellingLines(dead, letter);
  out.done();
  const trouble = typeof told === "string" ? undefined : troubleOf(letter, told.lines);
  const why = trouble === undefined ? undefined : reasonOfLine(trouble);
  out.record({
    ...recordOf(letter, why),
    state: head?.state ?? null,
    onStream: onStream ?? null,
    deliveries: forwarded?.deliveries ?? null,
    body: letter.body,
    log:
      typeof told === "string" ? null : told.lines.map(({ at, ...line }) => ({ at: new Date(at), ...line })),
  });
  const state =
    head === undefined ? "unknown: the table has no record of it" : stateText(head.state, out.colours);
  for (const line of describe(letter, { state: task && state, onStream, why, told }, out)) out.line(line);
  return EXIT.ok;
}

/** The lines that speak of a letter; in words why there are none to be had. */
async function tellingLines({ place }: DeadLetters, letter: Letter): Promise<Told | string> {
  try {
    using logs = await openLogs(place);
    const texts = [letter.id, letter.task, letter.forwarded?.subject].filter((text) => text !== undefined);
    return { where: logs.where, lines: await linesAbout(logs, texts, letter.sentAt - CLOCKS_MS).next() };
  } catch (error) {
    return `the logs cannot be read: ${cleanLine(reasonOf(error))}`;
  }
}

interface Known {
  readonly state: string | undefined;
  readonly onStream: boolean | undefined;
  readonly why: string | undefined;
  readonly told: Told | string;
}

function describe(letter: Letter, known: Known, { colours: c }: Pick<Output, "colours">): string[] {
  const { id, queue, task, message, from, to, receives, sentAt, body } = letter;
  const { told, why } = known;
  const none = typeof told === "string" ? told : `no line in ${told.where} tells`;
  const facts: [name: string, fact: string | undefined][] = [
    ["task", task && cleanLine(task)],
    ["state", known.state],
    ["message", message && cleanLine(message)],
    ["from → to", from && to ? `${cleanLine(from)} → ${cleanLine(to)}` : to && cleanLine(to)],
    ["sent", `${localTime(new Date(sentAt))}, ${durationText(Math.max(0, Date.now() - sentAt))} ago`],
    ["receives", `${receives}, looks at it included`],
    ["stream", streamText(letter, known.onStream)],
    ["why", why === undefined ? none : c.red(why)],
  ];
  const lines = typeof told === "string" ? [] : told.lines.slice(-LINES_SHOWN);
  return [
    `${id}  ${queue.name}`,
    ...facts.flatMap(([name, fact]) => (fact ? [`${name.padEnd(10)} ${fact}`] : [])),
    ...(lines.length > 0 ? ["", ...lines.map(logText)] : []),
    "",
    bodyText(body),
    "",
    `${withPlace(`./sluice dead redrive ${id}`)}  sends it back; ${withPlace(`./sluice dead drop ${id}`)}  deletes it`,
  ];
}

function streamText({ forwarded }: Letter, onStream: boolean | undefined): string | undefined {
  if (forwarded === undefined) return undefined;
  const { stream, seq, deliveries } = forwarded;
  const there = { true: "still there", false: "gone from it", undefined: "NATS cannot be asked" };
  return `${cleanLine(stream)} ${seq}, delivered ${deliveries} ${deliveries === 1 ? "time" : "times"}, ${there[`${onStream}`]}`;
}

function logText(line: LogLine): string {
  return `${localTime(new Date(line.at))}  ${line.function}  ${reasonOfLine(line)}`;
}

/** The message that the letter carries, or the letter itself. */
function bodyText(body: string): string {
  const text = clean(body);
  return text.length <= MAX_BODY ? text : `${text.slice(0, MAX_BODY)}… (--json shows all)`;
}
