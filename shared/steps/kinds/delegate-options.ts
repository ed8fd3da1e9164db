import type { DelegateOptions } from "../../agents/types.ts";
import type { ChildMessage } from "../../tasks/delegation.ts";
import { agentId, MAX_EVENT_BYTES, type Outgoing, skillSlug } from "../../wire/index.ts";
import { milliseconds } from "../duration.ts";
import type { Delegating, Engine } from "../engine.ts";
import { StepOptionError } from "../errors.ts";
import { toJson } from "../json.ts";

/** The longest name that may stand for an agent, and the longest subject, in characters. */
const MAX_NAME = 256;
const MAX_SUBJECT = 1_024;

/** What a step asks of another agent, checked. */
export interface Asked {
  /** Absent when the agent is to be chosen. */
  readonly to: string | undefined;
  /** Where that takes its tasks, if it is ours or the step says so. */
  readonly channelRef: string | undefined;
  /** The skill's slug; absent when neither an agent nor a skill is named. */
  readonly skill: string | undefined;
  readonly subject: string | undefined;
  /** The message as it goes on the wire. */
  readonly a2a: ChildMessage;
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
  const { to, skill, subject, message, timeout, onStatus } = options;
  if (to !== undefined && !isText(to, MAX_NAME))
    throw new StepOptionError(
      `to ${of}: expected a runtime id such as acme-support, or what one agent alone is called, of at most ${MAX_NAME} characters, got ${JSON.stringify(to)}`,
    );
  if (subject !== undefined && !isText(subject, MAX_SUBJECT))
    throw new StepOptionError(
      `subject ${of}: expected a text of 1 to ${MAX_SUBJECT} characters, got ${lengthOf(subject)}`,
    );
  if (onStatus !== undefined && typeof onStatus !== "function")
    throw new StepOptionError(`onStatus ${of}: expected a function, got a ${typeof onStatus}`);
  return {
    to,
    ...skillOf(skill, of, { to, agents: delegating.agents }),
    subject,
    a2a: a2aOf(message, of),
    timeoutMs: timeout === undefined ? undefined : milliseconds(timeout, `timeout ${of}`),
    onStatus,
  };
}

function lengthOf(value: unknown): string {
  return typeof value === "string" ? `one of ${value.length}` : `a ${typeof value}`;
}

function isText(value: unknown, longest: number): value is string {
  return typeof value === "string" && value !== "" && value.length <= longest;
}

/** @param target.agents ours, among which the runtime may be */
function skillOf(
  skill: unknown,
  of: string,
  { to, agents }: { to: string | undefined; agents: Delegating["agents"] },
): Pick<Asked, "channelRef" | "skill"> {
  const own = agents.find(({ runtime }) => runtime === to)?.channelRef;
  if (skill === undefined) return { channelRef: own, skill: to === undefined ? undefined : "task" };
  const text = typeof skill === "string" ? skill : "";
  const slug = skillSlug(text);
  const ref = text.includes("/") ? text.slice(0, text.lastIndexOf("/")) : own;
  if (slug === null || (ref !== undefined && !REF.test(ref)))
    throw new StepOptionError(
      `skill ${of}: expected a slug, or a channelRef, / and a slug, got ${JSON.stringify(skill)}`,
    );
  if (own !== undefined && ref !== own)
    throw new StepOptionError(`skill ${of}: expected the channelRef of ${to}, ${own}, got ${ref}`);
  if (to === undefined && ref !== undefined)
    throw new StepOptionError(
      `skill ${of}: expected a slug alone where no agent is named, got ${JSON.stringify(skill)}`,
    );
  if (ref !== undefined && !agentId().safeParse(to).success)
    throw new StepOptionError(
      `to ${of}: expected a runtime id such as acme-support beside a channelRef, got ${JSON.stringify(to)}`,
    );
  return { channelRef: ref, skill: slug };
}

/** The message in a form that every peer reads (docs/wire.md §6). */
function a2aOf(message: unknown, of: string): ChildMessage {
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
