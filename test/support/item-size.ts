import * as z from "zod";

/**
 * What an item of DynamoDB is charged by: its bytes as DynamoDB counts them (Developer Guide, "DynamoDB item sizes
 * and formats").
 */

/** A value as it stands in a request or an answer: one of these, named by its type. */
type Value = {
  readonly S?: string | undefined;
  readonly N?: string | undefined;
  readonly BOOL?: boolean | undefined;
  readonly NULL?: boolean | undefined;
  readonly SS?: readonly string[] | undefined;
  readonly L?: readonly Value[] | undefined;
  readonly M?: Readonly<Record<string, Value>> | undefined;
};

const value: z.ZodType<Value> = z.strictObject({
  S: z.string().optional(),
  N: z.string().optional(),
  BOOL: z.boolean().optional(),
  NULL: z.boolean().optional(),
  SS: z.array(z.string()).optional(),
  get L() {
    return z.array(value).optional();
  },
  get M() {
    return z.record(z.string(), value).optional();
  },
});

/** An item as the table gives it, before it is unmarshalled. */
export const rawItem = z.record(z.string(), value);
export type RawItem = z.infer<typeof rawItem>;

const KB = 1_024;
/** What a list or a map takes by itself, and for each of its elements. */
const DOCUMENT_BYTES = 3;
const ELEMENT_BYTES = 1;

/** The size of an item in bytes. */
export function itemBytes(item: RawItem): number {
  return sum(Object.entries(item).map(([name, held]) => Buffer.byteLength(name) + valueBytes(held)));
}

/** What it costs to write an item of so many bytes: a unit per started KB. */
export function writeUnits(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / KB));
}

function valueBytes({ S, N, SS, L, M }: Value): number {
  if (S !== undefined) return Buffer.byteLength(S);
  if (N !== undefined) return numberBytes(N);
  if (SS !== undefined) return sum(SS.map((text) => Buffer.byteLength(text)));
  if (L !== undefined) return DOCUMENT_BYTES + sum(L.map((one) => ELEMENT_BYTES + valueBytes(one)));
  if (M !== undefined) return DOCUMENT_BYTES + Object.keys(M).length * ELEMENT_BYTES + itemBytes(M);
  return 1;
}

/** A byte for each two significant digits, and one more; another for the sign. */
function numberBytes(text: string): number {
  const digits = text.replace(/^-|\.|e.*$/gi, "").replace(/^0+|0+$/g, "");
  return Math.ceil(digits.length / 2) + 1 + (text.startsWith("-") ? 1 : 0);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
