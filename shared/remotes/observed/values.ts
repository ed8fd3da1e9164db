import { optional } from "../../wire/reading.ts";
import * as z from "../../zod.ts";

/**
 * What a remote agent tells beside its answer, in data parts of a media type of their own (docs/hitl.md, "What an agent
 * tells of itself"). All of it is the agent's word: each value is read by itself and bounded, and one that cannot be read
 * is noted and harms nothing else.
 */

/** A data part that says of which kind it is: in lower case, as `application/vnd.protolabs.cost-v1+json`. */
export interface ObservedData {
  readonly mimeType: string;
  readonly data: unknown;
}

/** The most that is believed of a task's cost, in US dollars. */
export const MAX_COST_USD = 1_000_000;
/** The longest time that is believed, in milliseconds. */
const MAX_MS = 366 * 86_400_000;
/** Of a domain, a path, a tool or an id, in characters. */
const MAX_NAME = 256;
/** Of an explanation or an error, in characters. */
const MAX_TEXT = 2_000;
/** Of what a tool was given or gave, or what a path was set to, in bytes as JSON; more is left out. */
const MAX_VALUE_BYTES = 2_048;
/** Changes that one part may tell. */
export const MAX_DELTAS = 100;

const tokens = () => optional(z.int().check(z.gte(0)));
const name = () => z.string().check(z.minLength(1), z.maxLength(MAX_NAME));
const cut = () =>
  optional(
    z.pipe(
      z.string(),
      z.transform((text) => text.slice(0, MAX_TEXT).toWellFormed()),
    ),
  );
/** A JSON value, if it is small. */
const small = () =>
  optional(
    z.pipe(
      z.unknown(),
      z.transform((value) =>
        value !== undefined && Buffer.byteLength(JSON.stringify(value)) <= MAX_VALUE_BYTES
          ? value
          : undefined,
      ),
    ),
  );
const success = () => optional(z.boolean());

const cost = z.whenUsed(() =>
  z.object({
    usage: optional(
      z.object({
        input_tokens: tokens(),
        output_tokens: tokens(),
        cache_creation_input_tokens: tokens(),
        cache_read_input_tokens: tokens(),
      }),
    ),
    durationMs: optional(z.number().check(z.gte(0), z.lte(MAX_MS))),
    costUsd: optional(z.number().check(z.gte(0), z.lte(MAX_COST_USD))),
    success: success(),
  }),
);
/** What the task has cost so far: tokens, milliseconds, US dollars. */
export type Cost = z.Used<typeof cost>;

const confidence = z.whenUsed(() =>
  z.object({
    /** From 0 to 1; what lies beyond is taken for the end that it lies at. */
    confidence: z.pipe(
      z.number(),
      z.transform((value) => Math.min(1, Math.max(0, value))),
    ),
    explanation: cut(),
    success: success(),
  }),
);
/** How sure the agent is of what it has done. */
export type Confidence = z.Used<typeof confidence>;

const worldstate = z.whenUsed(() =>
  z.object({
    deltas: z
      .array(z.object({ domain: name(), path: name(), op: z.enum(["set", "inc", "push"]), value: small() }))
      .check(z.maxLength(MAX_DELTAS)),
  }),
);
/** What the agent has changed in the world. */
export type WorldstateDelta = z.Used<typeof worldstate>["deltas"][number];

const toolCall = z.whenUsed(() =>
  z.object({
    toolCallId: name(),
    name: name(),
    phase: z.enum(["started", "completed", "failed"]),
    args: small(),
    result: small(),
    error: cut(),
  }),
);
/** That a tool was called, or has come to its end. */
export type ToolCall = z.Used<typeof toolCall>;

/** A value of an extension, or why a part is none. */
export type Observed =
  | { readonly kind: "cost"; readonly value: Cost }
  | { readonly kind: "confidence"; readonly value: Confidence }
  | { readonly kind: "worldstate"; readonly value: readonly WorldstateDelta[] }
  | { readonly kind: "toolCall"; readonly value: ToolCall }
  /** Of a kind that we do not know. */
  | { readonly kind: "unknown" }
  | { readonly kind: "unread"; readonly note: string };

const KIND = /^application\/vnd\.protolabs\.([a-z-]+-v1)\+json$/;

/** Reads one data part; never throws. A note names kind and field, and nothing that the agent has written. */
export function readObserved({ mimeType, data }: ObservedData): Observed {
  const [, kind = ""] = KIND.exec(mimeType) ?? [];
  switch (kind) {
    case "cost-v1":
      return read(cost(), kind, data, (value) => ({ kind: "cost", value }));
    case "confidence-v1":
      return read(confidence(), kind, data, (value) => ({ kind: "confidence", value }));
    case "worldstate-delta-v1":
      return read(worldstate(), kind, data, ({ deltas }) => ({ kind: "worldstate", value: deltas }));
    case "tool-call-v1":
      return read(toolCall(), kind, data, (value) => ({ kind: "toolCall", value }));
    default:
      return { kind: "unknown" };
  }
}

function read<T>(
  schema: z.ZodMiniType<T>,
  kind: string,
  data: unknown,
  as: (value: T) => Observed,
): Observed {
  const parsed = schema.safeParse(data);
  if (parsed.success) return as(parsed.data);
  // Of a path, numbers and our own names alone: the agent's are its text.
  const field = parsed.error.issues[0]?.path.join(".") || "value";
  return { kind: "unread", note: `${kind}: its ${field} is not as expected` };
}
