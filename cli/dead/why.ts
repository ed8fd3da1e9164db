import type { LogLine } from "../logs/line.ts";
import { cleanLine } from "../text.ts";
import type { Letter } from "./letter.ts";

/** The longest that a reason in a list may be. */
const MAX_REASON = 300;

/** Whether a line speaks of a letter: by SQS's id, by its place in the stream, or by its task. */
export function speaksOf(letter: Letter, { fields }: LogLine): boolean {
  if (fields.sqsMessageId === letter.id) return true;
  const { forwarded, task } = letter;
  if (forwarded !== undefined) return fields.stream === forwarded.stream && fields.seq === forwarded.seq;
  return task !== undefined && fields.taskId === task;
}

/** The last line that tells what went wrong with a letter. */
export function troubleOf(letter: Letter, lines: readonly LogLine[]): LogLine | undefined {
  return lines.findLast((line) => isTrouble(line) && (line.level === "" || speaksOf(letter, line)));
}

function isTrouble({ level }: LogLine): boolean {
  return level === "" || level === "WARN" || level === "ERROR";
}

/** What a line says went wrong, on one line: the error itself where it has one. */
export function reasonOfLine({ message, fields }: LogLine): string {
  const { errorName, errorMessage, reason } = fields;
  const error =
    typeof errorMessage === "string" ? `${String(errorName ?? "Error")}: ${errorMessage}` : undefined;
  const why = error ?? (typeof reason === "string" ? reason : undefined);
  return cleanLine(why === undefined ? message : `${message}: ${why}`, MAX_REASON);
}
