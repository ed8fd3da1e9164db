import type { Message } from "../wire/index.ts";
import * as z from "../zod.ts";

/** What a schema makes of a message, or what is wrong with it. */
export type Input =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false;
      /** The field within the input, `a.b`; empty for the whole of it. */
      readonly field: string;
      readonly problem: string;
    };

const TEXT_TYPES: ReadonlySet<string> = new Set(["string", "enum", "literal", "template_literal"]);

/** What one types as a word: nobody would think of sending a data part for it. */
const SCALAR_TYPES: ReadonlySet<string> = new Set(["number", "bigint", "boolean", "date", "null"]);

/** Whether what a schema takes is of one of these types, whatever is wrapped around it. */
function takes(types: ReadonlySet<string>, schema: z.$ZodType): boolean {
  const { def } = schema._zod;
  if (types.has(def.type)) return true;
  if ("innerType" in def && def.innerType instanceof z.$ZodType) return takes(types, def.innerType);
  if ("in" in def && def.in instanceof z.$ZodType) return takes(types, def.in);
  return false;
}

/** The message's text parts, joined by newlines. */
export function textOf(message: Message): string {
  return message.parts.flatMap((part) => ("text" in part ? [part.text] : [])).join("\n");
}

function candidate(schema: z.$ZodType, message: Message): { value: unknown; note: string } {
  const text = textOf(message);
  if (takes(TEXT_TYPES, schema)) return { value: text, note: "" };
  const data = message.parts.find((part) => "data" in part);
  if (data !== undefined && "data" in data) return { value: data.data, note: "" };
  try {
    return { value: JSON.parse(text), note: "" };
  } catch {
    const note = " (the message has no data part, and its text is no JSON)";
    return { value: text, note: takes(SCALAR_TYPES, schema) ? "" : note };
  }
}

/**
 * What a skill's `input` schema makes of a message (docs/agents.md): for a string schema the text, otherwise the
 * first data part, or the text parsed as JSON.
 */
export async function readInput(schema: z.$ZodType, message: Message): Promise<Input> {
  const { value, note } = candidate(schema, message);
  let parsed: z.core.util.SafeParseResult<unknown>;
  try {
    parsed = await z.safeParseAsync(schema, value);
  } catch (error) {
    // zod hands on what a transform or a refinement throws: that is the message's fault, not the worker's.
    const thrown = error instanceof Error ? error.message : "the schema threw";
    return { ok: false, field: "", problem: `${thrown}${note}` };
  }
  if (parsed.success) return { ok: true, value: parsed.data };
  const [issue] = parsed.error.issues;
  const field = (issue?.path ?? []).map(String).join(".");
  return { ok: false, field, problem: `${issue?.message ?? "does not fit"}${note}` };
}
