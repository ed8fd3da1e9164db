import * as z from "zod";

/** One line of a function's log. */
export interface LogLine {
  /** By which it is known when it is read again. */
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Such as `admit`. */
  readonly function: string;
  /** Such as `INFO`; empty for a line that is Lambda's own. */
  readonly level: string;
  readonly message: string;
  /** What else a structured line tells. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Of the invocation that wrote it, as far as it tells. */
  readonly requestId?: string;
}

/** What every line of Powertools' logger has (Powertools for AWS Lambda: Logger, standard structured keys). */
const structured = z.looseObject({
  level: z.string(),
  message: z.string(),
  timestamp: z.iso.datetime({ offset: true }),
  service: z.string().optional(),
  function_request_id: z.string().optional(),
});

/** Fields that tell of the function, not of what happened. */
const OF_THE_FUNCTION: ReadonlySet<string> = new Set([
  "level",
  "message",
  "timestamp",
  "service",
  "sampling_rate",
  "cold_start",
  "xray_trace_id",
  "function_arn",
  "function_memory_size",
  "function_name",
  "function_request_id",
]);

/** What Lambda says of each invocation, however it went. */
const ROUTINE = /^(START|END|REPORT|INIT_START|XRAY)\b/;
const REQUEST_ID = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/;

/** Where a line was found. */
export interface Found {
  readonly id: string;
  readonly text: string;
  /** The function's name as its log tells it. */
  readonly function: string;
  /** When it was written, for a line that does not say so itself; in milliseconds since 1970. */
  readonly at: number;
}

/**
 * Reads a line: a structured one, or one of Lambda's own that says that something went wrong. Metrics and what Lambda
 * says of every invocation are none.
 */
export function lineOf({ id, text, function: name, at }: Found): LogLine | undefined {
  const read = structured.safeParse(jsonOf(text));
  if (read.success) {
    const { level, message, timestamp, service = name, function_request_id: requestId } = read.data;
    const fields = Object.entries(read.data).filter(([key]) => !OF_THE_FUNCTION.has(key));
    return {
      id,
      at: Date.parse(timestamp),
      function: service,
      level,
      message,
      fields: Object.fromEntries(fields),
      ...(requestId !== undefined && { requestId }),
    };
  }
  const words = text.replace(LEADING_TIME, "").trim();
  if (words === "" || words.startsWith("{") || ROUTINE.test(words)) return undefined;
  const requestId = REQUEST_ID.exec(words)?.[0];
  const known = requestId === undefined ? {} : { requestId };
  return { id, at: timeOf(text) ?? at, function: name, level: "", message: words, fields: {}, ...known };
}

const TIMESTAMP = /"timestamp":"(\d{4}-\d\d-\d\dT[0-9:.]+Z)"/;
/** Of Lambda's own lines, here all (infra/local/log-file.ts) and in CloudWatch some begin with when it was. */
const LEADING_TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)\s+/;

/** When a line was written, in milliseconds since 1970, if it says so. Not parsed: most lines are nobody's business. */
export function timeOf(text: string): number | undefined {
  const time = (LEADING_TIME.exec(text) ?? TIMESTAMP.exec(text))?.[1];
  const at = time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(at) ? undefined : at;
}

function jsonOf(text: string): unknown {
  if (!text.startsWith("{")) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
