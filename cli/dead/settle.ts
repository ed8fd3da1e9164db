import { confirm } from "../confirm.ts";
import type { DeadOptions } from "../dead.ts";
import { CliError, EXIT } from "../errors.ts";
import { type Output, processOutput } from "../output.ts";
import { reasonOf } from "../place.ts";
import { currentHome } from "../session.ts";
import { cleanLine, countText } from "../text.ts";
import type { Letter } from "./letter.ts";
import { noneText, noteRest } from "./list.ts";
import { type DeadLetters, meantLetter, noLetter, openDeadLetters } from "./open.ts";
import { drop, redrive } from "./redrive.ts";

/** What becomes of one letter: why it was kept, if it was. */
type Settle = (letter: Letter) => Promise<string | undefined>;

/** `sluice dead redrive`. */
export async function redriveSome(id: string | undefined, given: DeadOptions): Promise<number> {
  oneOrAll(id, given);
  const out = processOutput(given.json);
  await using dead = await openDeadLetters(currentHome(given), given);
  return await settleAll(dead, await wholeId(dead, id), out, "redriven", async (letter) => {
    const outcome = await redrive(dead, letter);
    return outcome.sent ? undefined : outcome.why;
  });
}

/** `sluice dead drop`. */
export async function dropSome(id: string | undefined, given: DeadOptions): Promise<number> {
  oneOrAll(id, given);
  const out = processOutput(given.json);
  if (!given.yes && !out.interactive)
    throw new CliError(EXIT.usage, "what is dropped is gone for good: without a terminal --yes is required");
  await using dead = await openDeadLetters(currentHome(given), given);
  const whole = await wholeId(dead, id);
  if (!given.yes && !(await confirm(await questionFor(dead, whole)))) {
    out.line("nothing is dropped");
    return EXIT.failed;
  }
  return await settleAll(dead, whole, out, "dropped", async (letter) => {
    await drop(dead.client, letter);
    return undefined;
  });
}

function oneOrAll(id: string | undefined, { all }: DeadOptions): void {
  if ((id === undefined) !== all)
    throw new CliError(EXIT.usage, "expected one dead letter's id, or --all (of --queue NAME)");
}

/** SQS's message ids are UUIDs (Amazon SQS API Reference, SendMessage: example response). */
const UUID_LENGTH = 36;

/** The id that is meant by its beginning: what begins so is known only once all pages have been seen. */
async function wholeId(dead: DeadLetters, id: string | undefined): Promise<string | undefined> {
  if (id === undefined || id.length >= UUID_LENGTH) return id;
  return meantLetter((await dead.look()).letters, id).id;
}

/** Nothing is held while a person thinks. */
async function questionFor(dead: DeadLetters, id: string | undefined): Promise<string> {
  const { letters, more } = await dead.look();
  if (id === undefined)
    return `Delete ${countText(letters.length, "dead letter")}${more ? " and more" : ""} of ${dead.place.label} for good?`;
  const letter = letters.find((of) => of.id === id);
  if (letter === undefined) throw noLetter(id);
  const { queue, task } = letter;
  return `Delete a dead letter of ${queue.name}${task === undefined ? "" : `, of ${cleanLine(task)},`} for good?`;
}

async function settleAll(
  dead: DeadLetters,
  id: string | undefined,
  out: Output,
  done: "redriven" | "dropped",
  settle: Settle,
): Promise<number> {
  const startedAt = Date.now();
  let settled = 0;
  let kept = 0;
  // What has died again since is for another time.
  const isMeant = (letter: Letter) => (id === undefined ? letter.sentAt < startedAt : letter.id === id);
  const look = await dead.look(async (page) => {
    const back: Letter[] = page.filter((letter) => !isMeant(letter));
    for (const letter of page.filter(isMeant)) {
      const why = await settle(letter).catch((error: unknown) => reasonOf(error));
      settled++;
      tell(out, letter, done, why);
      if (why === undefined) continue;
      kept++;
      back.push(letter);
    }
    return back;
  });
  if (id !== undefined && settled === 0) throw noLetter(id);
  if (settled === 0) out.line(noneText(look));
  if (id === undefined) noteRest(look, out);
  const isRest = id === undefined && (look.hidden > 0 || look.more);
  return kept === 0 && !isRest ? EXIT.ok : EXIT.failed;
}

function tell(out: Output, letter: Letter, done: string, why: string | undefined): void {
  const { id, queue, task } = letter;
  out.record({
    id,
    queue: queue.name,
    task: task ?? null,
    outcome: why === undefined ? done : "kept",
    why: why ?? null,
  });
  const what = [id, queue.name, ...(task === undefined ? [] : [cleanLine(task)])].join("  ");
  out.line(
    why === undefined ? `${what}  ${done}` : `${what}  ${out.colours.red("kept")}: ${cleanLine(why, 1_000)}`,
  );
}
