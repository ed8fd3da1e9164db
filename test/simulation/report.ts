import { Choices, writeChoices } from "./choices.ts";
import { playHistory } from "./history.ts";
import { INVARIANTS, type Violation } from "./invariants.ts";
import { Narration } from "./narration.ts";
import { shrink } from "./shrink.ts";

const SHRINK_MS = 30_000;

/** A history that breaks an invariant, made small. */
export interface Small {
  readonly violation: Violation;
  readonly choices: readonly number[];
}

/** Makes a failing history small: one that breaks the same invariant. */
export async function smallest(
  violation: Violation,
  choices: readonly number[],
  forMs = SHRINK_MS,
): Promise<Small> {
  const untilMs = performance.now() + forMs;
  let last = violation;
  const fails = async (list: readonly number[]) => {
    const played = await playHistory(Choices.replay(list));
    if (played.violation?.invariant !== violation.invariant) return false;
    last = played.violation;
    return true;
  };
  const small = await shrink(choices, fails, { untilMs });
  return { violation: last, choices: small };
}

/** A history as a reader wants it: a line for each thing that happens, what it breaks, and how to see it again. */
export async function narrate(choices: readonly number[], say: (line: string) => void): Promise<boolean> {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 10;
  const narration = new Narration(say);
  const { violation } = await playHistory(Choices.replay(choices), (line) => narration.tell(shortened(line)));
  narration.end();
  Error.stackTraceLimit = limit;
  if (violation === undefined) say("\nno invariant is broken");
  else {
    say(`\nbroken: ${violation.invariant} – ${INVARIANTS[violation.invariant]}`);
    say(`        ${shortened(violation.text)}`);
  }
  say(`replay: npm run simulate -- --replay ${writeChoices(choices) || "0"}`);
  return violation === undefined;
}

/** Ids as short as they can be told apart. */
function shortened(line: string): string {
  return line
    .replace(/(task_[0-9a-f]{4})[0-9a-f]{20}/g, "$1")
    .replace(/([0-9a-f]{4})[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "$1")
    .replace(/([0-9a-f]{4})[0-9a-f]{60}/g, "$1")
    .replace(/TASK_STATE_/g, "")
    .replace(/e#0+(\d)/g, "e#$1");
}
