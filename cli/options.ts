import { type Command, InvalidArgumentError } from "commander";
import * as z from "zod";
import { MAX_DELEGATION_DEPTH } from "../shared/config/policy.ts";
import { agentId, messageId } from "../shared/wire/index.ts";

/** Options that every verb has. */
export const common = z.object({
  nats: z.string().optional(),
  creds: z.string().optional(),
  ca: z.string().optional(),
  dataFolder: z.string().optional(),
  json: z.boolean().default(false),
});
export type Common = z.infer<typeof common>;

/** Where the local host has its data, if not in `.sluice`. */
export const DATA_FOLDER = [
  "--data-folder <folder>",
  "data folder of the local host (default: SLUICE_DATA, .sluice)",
] as const;

export function withCommon(command: Command): Command {
  return command
    .option("--nats <url>", "NATS server (default: NATS_URL, the running host, agents.yaml, port 4222)")
    .option("--creds <path>", "NATS credentials: .creds, nkey seed, token, or JSON with user and password")
    .option("--ca <path>", "PEM file of the authority that signed the server's certificate")
    .option(...DATA_FOLDER)
    .option("--json", "one JSON object a line, for programs");
}

/** The longest wait that a timer of Node takes, in whole seconds (Node.js docs: setTimeout). */
export const MAX_TIMEOUT_SEC = 2_147_483;

/** A positive number of seconds. */
export function seconds(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && value > 0 && value <= MAX_TIMEOUT_SEC) return value;
  throw new InvalidArgumentError(`Expected seconds, more than 0 and at most ${MAX_TIMEOUT_SEC}.`);
}

/** A positive whole number. */
export function count(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Expected a whole number from 1 to 999999.");
}

/** How many times a task may be handed on. */
export function hops(text: string): number {
  if (/^\d{1,2}$/.test(text) && Number(text) <= MAX_DELEGATION_DEPTH) return Number(text);
  throw new InvalidArgumentError(`Expected a whole number from 0 to ${MAX_DELEGATION_DEPTH}.`);
}

/** A runtime id. */
export function runtime(text: string): string {
  if (agentId().safeParse(text).success) return text;
  throw new InvalidArgumentError("Expected a runtime id: 1 to 64 of A-Z, a-z, 0-9, _ and -.");
}

/** A task's id, or the key of one that was rejected: what stands in the subjects of its events. */
export function taskKey(text: string): string {
  if (messageId().safeParse(text).success) return text;
  throw new InvalidArgumentError("Expected a task's id: 1 to 128 of A-Z, a-z, 0-9, _ and -.");
}

/** A stack's name (CloudFormation API reference, CreateStack). */
export function stack(text: string): string {
  if (/^[A-Za-z][A-Za-z0-9-]{0,127}$/.test(text)) return text;
  throw new InvalidArgumentError("Expected a stack's name: 1 to 128 of A-Z, a-z, 0-9 and -, a letter first.");
}

/** Of a verb that speaks to a stack: to which. */
export const STACK = [
  "--stack <name>",
  "a deployed stack (default: the local host that runs in this folder)",
  stack,
] as const;
