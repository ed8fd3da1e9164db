import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import * as z from "zod";

/** The largest value of the bucket, in bytes (docs/wire.md, cards). */
const MAX_RECORD_BYTES = 65_536;

const schema = z
  .looseObject({})
  .parse(JSON.parse(readFileSync(join(import.meta.dirname, "peer-record.schema.json"), "utf8")));
const check = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true }).compile(schema);

const names = z.object({ agentId: z.string(), card: z.object({ name: z.string() }) });

/**
 * What existing peers find wrong with a record of the bucket. The rules were written from what these peers do, and not
 * from what Sluice publishes: whoever changes one must not look at the other.
 *
 * @param key under which it lies
 * @returns nothing when it is valid to them
 */
export function brokenRules(key: string, bytes: Uint8Array): string[] {
  if (bytes.byteLength > MAX_RECORD_BYTES) return [`${bytes.byteLength} bytes`];
  let record: unknown;
  try {
    record = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    return [String(error)];
  }
  if (!check(record))
    return (check.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  const { agentId, card } = names.parse(record);
  return [
    ...(agentId === key ? [] : [`the key ${key} is not the agent's id ${agentId}`]),
    ...(card.name === agentId ? [] : [`the card's name ${card.name} is not the agent's id ${agentId}`]),
  ];
}
