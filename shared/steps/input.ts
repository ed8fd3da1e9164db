import * as z from "zod";
import type { Message } from "../wire/index.ts";

/** A task's input, or what is wrong with it in words that name the field. */
export type Input =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly reason: string };

const TEXT_TYPES: ReadonlySet<string> = new Set(["string", "enum", "literal", "template_literal"]);

/** Whether a schema takes a text: a string schema, whatever is wrapped around it. */
function takesText(schema: z.ZodType): boolean {
  const { def } = schema;
  if (TEXT_TYPES.has(def.type)) return true;
  if ("innerType" in def && def.innerType instanceof z.ZodType) return takesText(def.innerType);
  if ("in" in def && def.in instanceof z.ZodType) return takesText(def.in);
  return false;
}

/** The message's text parts, joined by newlines. */
export function textOf(message: Message): string {
  return message.parts.flatMap((part) => ("text" in part ? [part.text] : [])).join("\n");
}

function candidate(schema: z.ZodType, message: Message): { value: unknown; note: string } {
  const text = textOf(message);
  if (takesText(schema)) return { value: text, note: "" };
  const data = message.parts.find((part) => "data" in part);
  if (data !== undefined && "data" in data) return { value: data.data, note: "" };
  try {
    return { value: JSON.parse(text), note: "" };
  } catch {
    return { value: text, note: " (the message has no data part, and its text is no JSON)" };
  }
}

/**
 * What a skill's `input` schema makes of a message (docs/agents.md): for a string schema the text, otherwise the
 * first data part, or the text parsed as JSON.
 *
 * @param what how the input is called when it does not fit
 */
export async function readInput(schema: z.ZodType, message: Message, what = "input"): Promise<Input> {
  const { value, note } = candidate(schema, message);
  let parsed: z.ZodSafeParseResult<unknown>;
  try {
    parsed = await schema.safeParseAsync(value);
  } catch (error) {
    // zod hands on what a transform or a refinement throws: that is the message's fault, not the worker's.
    return {
      ok: false,
      reason: `input: ${error instanceof Error ? error.message : "the schema threw"}${note}`,
    };
  }
  if (parsed.success) return { ok: true, value: parsed.data };
  const [issue] = parsed.error.issues;
  const field = [what, ...(issue?.path ?? [])].map(String).join(".");
  return { ok: false, reason: `${field}: ${issue?.message ?? "does not fit"}${note}` };
}
