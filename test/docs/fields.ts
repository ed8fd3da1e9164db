import * as z from "zod";
import type { Cell } from "../report/markdown.ts";

/** A field as a page tells it: its path, which values it takes, what it is without one, and what it means. */
export interface FieldRow {
  readonly path: string;
  readonly values: string;
  readonly fallback: string;
  readonly meaning: string;
}

/** What {@link fieldRows} takes: the fields of an object schema. */
export type Fields = Readonly<Record<string, z.ZodType>>;

/**
 * The fields of an object, each followed by those of its own objects and lists of objects, named by their paths.
 *
 * @param apart fields that have a table of their own: what is within them is left out
 * @throws Error that names a field whose schema does not describe it
 */
export function fieldRows(fields: Fields, apart: readonly string[] = [], prefix = ""): FieldRow[] {
  return Object.entries(fields).flatMap(([name, schema]) => {
    const path = `${prefix}${name}`;
    if (schema.description === undefined) throw new Error(`${path}: its schema has no description`);
    const row = { path, values: valuesOf(schema), fallback: fallbackOf(schema), meaning: schema.description };
    return [row, ...(apart.includes(path) ? [] : within(schema, path, apart))];
  });
}

/** The rows as a table in Markdown. */
export function fieldTable(rows: readonly FieldRow[]): { head: string[]; rows: Cell[][] } {
  return {
    head: ["field", "values", "default", "meaning"],
    rows: rows.map(({ path, values, fallback, meaning }) => [`\`${path}\``, values, fallback, meaning]),
  };
}

function within(schema: z.ZodType, path: string, apart: readonly string[]): FieldRow[] {
  const bare = unwrapped(schema);
  if (bare instanceof z.ZodObject) return fieldRows(bare.shape, apart, `${path}.`);
  if (!(bare instanceof z.ZodArray)) return [];
  const element = choices(bare.element).find((of) => of instanceof z.ZodObject);
  return element === undefined ? [] : fieldRows(element.shape, apart, `${path}[].`);
}

/** The schema of what is written, without its default and without what is made of it. */
function unwrapped(schema: unknown): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return unwrapped(schema.unwrap());
  return schema instanceof z.ZodPipe ? unwrapped(schema.in) : schema;
}

/** What may be written, each without what is made of it. */
function choices(schema: unknown): unknown[] {
  const bare = unwrapped(schema);
  return bare instanceof z.ZodUnion ? bare.options.map(unwrapped) : [bare];
}

/** What the schema makes of nothing. */
function fallbackOf(schema: z.ZodType): string {
  const read = schema.safeParse(undefined);
  if (!read.success) return "required";
  if (read.data === undefined) return "none";
  // An object without a value is its fields' defaults, which have rows of their own.
  const isObject = unwrapped(schema) instanceof z.ZodObject;
  return isObject ? "" : `\`${JSON.stringify(read.data).replace(/^"(.*)"$/, "$1")}\``;
}

function valuesOf(schema: z.ZodType): string {
  const bare = unwrapped(schema);
  if (bare instanceof z.ZodArray) return listOf(bare);
  if (bare instanceof z.ZodEnum || bare instanceof z.ZodLiteral)
    return choice((bare instanceof z.ZodEnum ? bare.options : [...bare.values]).map((of) => `\`${of}\``));
  if (bare instanceof z.ZodBoolean) return "`true` or `false`";
  if (bare instanceof z.ZodNumber) return numbers(bare);
  if (bare instanceof z.ZodString || bare instanceof z.ZodURL || bare instanceof z.ZodEmail)
    return textOf(bare);
  if (bare instanceof z.ZodObject || bare instanceof z.ZodRecord) return "fields";
  if (bare instanceof z.ZodUnion)
    return bare.options
      .filter((of) => of instanceof z.ZodType)
      .map(valuesOf)
      .join(", or ");
  throw new Error(`no words for a schema of the kind ${schema.type}`);
}

const jsonSchema = z.object({
  type: z.string().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
  minItems: z.number().optional(),
  maxItems: z.number().optional(),
});
const boundsOf = (schema: z.ZodType) => jsonSchema.parse(z.toJSONSchema(schema, { io: "input" }));

function numbers(schema: z.ZodType): string {
  const { type, minimum, maximum } = boundsOf(schema);
  if (minimum === undefined || maximum === undefined) throw new Error("expected a number with both bounds");
  return `${type === "integer" ? "integer, " : ""}${count(minimum)} to ${count(maximum)}`;
}

function listOf(schema: z.ZodArray): string {
  const { minItems, maxItems } = boundsOf(schema);
  const many =
    maxItems === undefined
      ? minItems === undefined
        ? "list"
        : `list, at least ${minItems}`
      : `list, ${minItems ?? 0} to ${count(maxItems)}`;
  const element: unknown = schema.element;
  return element instanceof z.ZodType && !(unwrapped(element) instanceof z.ZodObject)
    ? `${many}: ${valuesOf(element)}`
    : many;
}

/** What an error says that was expected: nobody is told two things. */
function textOf(schema: z.ZodType): string {
  const read = schema.safeParse("\0");
  const expected = read.error?.issues[0]?.message.match(/^expected (.*)$/)?.[1];
  if (expected !== undefined) return expected;
  if (schema instanceof z.ZodURL) return "URL";
  const { minLength, maxLength } = boundsOf(schema);
  return maxLength === undefined ? "text" : `text of ${minLength ?? 0} to ${maxLength} characters`;
}

function choice(of: readonly string[]): string {
  return of.length < 2 ? of.join("") : `${of.slice(0, -1).join(", ")} or ${of.at(-1)}`;
}

const count = (number: number) => number.toLocaleString("en-US");
