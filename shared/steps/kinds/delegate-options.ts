import type { DelegateOptions } from "../../agents/types.ts";
import { agentId, MAX_EVENT_BYTES, type Outgoing, skillSlug } from "../../wire/index.ts";
import { milliseconds } from "../duration.ts";
import type { Delegating, Engine } from "../engine.ts";
import { StepOptionError } from "../errors.ts";
import { toJson } from "../json.ts";

/** What a step asks of another agent, checked. */
export interface Asked {
  readonly to: string;
  /** Absent when nobody of that name is known: then nothing is sent. */
  readonly channelRef: string | undefined;
  /** The skill's slug. */
  readonly skill: string;
  /** The message as it goes on the wire. */
  readonly a2a: unknown;
  readonly timeoutMs: number | undefined;
  readonly onStatus: DelegateOptions["onStatus"];
}

const REF = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/**
 * Reads the options of a step that delegates.
 *
 * @throws StepOptionError naming the field, NotJsonError
 */
export function askedOf({ delegating }: Engine, id: string, options: DelegateOptions): Asked {
  const of = `of step ${JSON.stringify(id)}`;
  if (typeof options !== "object" || options === null)
    throw new StepOptionError(
      `the options ${of}: expected { to, message, … }, got ${JSON.stringify(options)}`,
    );
  const { to, skill = "task", message, timeout, onStatus } = options;
  if (!agentId.safeParse(to).success)
    throw new StepOptionError(
      `to ${of}: expected a runtime id such as acme-support, got ${JSON.stringify(to)}`,
    );
  if (onStatus !== undefined && typeof onStatus !== "function")
    throw new StepOptionError(`onStatus ${of}: expected a function, got a ${typeof onStatus}`);
  return {
    to,
    ...skillOf(skill, of, { to, agents: delegating.agents }),
    a2a: a2aOf(message, of),
    timeoutMs: timeout === undefined ? undefined : milliseconds(timeout, `timeout ${of}`),
    onStatus,
  };
}

/** @param target.agents ours, among which the runtime may be */
function skillOf(
  skill: unknown,
  of: string,
  { to, agents }: { to: string; agents: Delegating["agents"] },
): Pick<Asked, "channelRef" | "skill"> {
  const own = agents.find(({ runtime }) => runtime === to)?.channelRef;
  const text = typeof skill === "string" ? skill : "";
  const slug = skillSlug(text);
  const ref = text.includes("/") ? text.slice(0, text.lastIndexOf("/")) : own;
  if (slug === null || (ref !== undefined && !REF.test(ref)))
    throw new StepOptionError(
      `skill ${of}: expected a slug, or a channelRef, / and a slug, got ${JSON.stringify(skill)}`,
    );
  if (own !== undefined && ref !== own)
    throw new StepOptionError(`skill ${of}: expected the channelRef of ${to}, ${own}, got ${ref}`);
  return { channelRef: ref, skill: slug };
}

/** The message in a form that every peer reads (docs/wire.md §6). */
function a2aOf(message: unknown, of: string): unknown {
  if (typeof message === "string") return { kind: "text", text: message };
  const parts: readonly unknown[] = Array.isArray(message) ? message : [message];
  if (parts.length === 0) throw new StepOptionError(`message ${of}: expected a part, got none`);
  const a2a = { message: { parts: parts.map((part) => partOf(part, of)) } };
  toJson(a2a, `message ${of}`);
  return a2a;
}

const MEMBERS = ["text", "data", "raw", "url", "bytes"];

function partOf(part: unknown, of: string): unknown {
  const members = typeof part === "object" && part !== null ? MEMBERS.filter((name) => name in part) : [];
  const unfit = (got: string) =>
    new StepOptionError(
      `message ${of}: expected a text, or parts with one of text, data, bytes, raw and url, got ${got}`,
    );
  const [member] = members;
  if (typeof part !== "object" || part === null || member === undefined || members.length > 1)
    throw unfit(members.length > 1 ? members.join(" and ") : part === null ? "null" : `a ${typeof part}`);
  if (!("bytes" in part)) {
    const held: unknown = Object.entries(part).find(([name]) => name === member)?.[1];
    if (member === "data" ? held === undefined : typeof held !== "string")
      throw unfit(`${member} with a ${typeof held}`);
    return part;
  }
  const { bytes, ...rest } = part;
  if (!(bytes instanceof Uint8Array)) throw unfit(`bytes with a ${typeof bytes}`);
  return { ...rest, raw: Buffer.from(bytes).toString("base64") };
}

/** @throws StepOptionError when a message is larger than its stream takes */
export function checkSize(id: string, { body }: Outgoing): void {
  const bytes = Buffer.byteLength(body);
  if (bytes > MAX_EVENT_BYTES)
    throw new StepOptionError(
      `message of step ${JSON.stringify(id)}: expected at most ${MAX_EVENT_BYTES} bytes with its envelope, got ${bytes}`,
    );
}
