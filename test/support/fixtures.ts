import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as z from "zod";

/** What an executor must do with a message of `test/fixtures/wire/tasks.json`. */
const expectation = z.object({
  ack: z.enum(["ack", "term"]),
  event: z.enum(["accepted", "rejected"]).optional(),
  taskId: z.string().optional(),
  code: z.string().optional(),
});

const taskFile = z.object({
  cases: z.array(
    z.object({
      name: z.string(),
      subject: z.string(),
      headers: z.record(z.string(), z.string()),
      body: z.looseObject({ payload: z.unknown() }).optional(),
      rawBody: z.string().optional(),
      direct: z.boolean().optional(),
      expect: expectation,
    }),
  ),
});

const eventFile = z.object({
  task: z.object({ messageId: z.string(), from: z.string(), to: z.string(), clientTaskRef: z.string() }),
  events: z.array(
    z.object({
      kind: z.enum(["accepted", "rejected", "status", "artifact", "result"]),
      subject: z.string(),
      headers: z.record(z.string(), z.string()),
      body: z.unknown(),
    }),
  ),
});

/** A task message with its placeholders resolved, as a peer publishes it. */
export interface TaskCase {
  readonly name: string;
  readonly subject: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Uint8Array;
  readonly expect: z.infer<typeof expectation>;
  /** Too large for a standard server: hand it to the admission code itself. */
  readonly direct: boolean;
}

/** The cases of `tasks.json` as published at `now` (milliseconds since 1970). */
export function loadTaskCases(now: number): TaskCase[] {
  return taskFile.parse(readFixture("tasks.json")).cases.map(({ body, rawBody, direct = false, ...rest }) => {
    const text = rawBody ?? JSON.stringify(padded(body));
    return { ...rest, direct, bytes: new TextEncoder().encode(withTimes(text, now)) };
  });
}

/** The events of `events.json`: what an executor publishes for one task, and the forms that its events have. */
export function loadEventForms(): z.infer<typeof eventFile> {
  return eventFile.parse(readFixture("events.json"));
}

/** Any fixture of the wire, unresolved. */
export function readFixture(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../fixtures/wire/${name}`, import.meta.url), "utf8"));
}

/**
 * Asserts that a value has the form of a fixture: deep-equal, except where the fixture has `{{createdAt}}`,
 * `{{string}}` or `{{number}}`.
 */
export function assertForm(actual: unknown, form: unknown): void {
  assert.deepEqual(actual, filled(form, actual));
}

/** A form with its placeholders replaced by what the actual value has in their places, if that is of their kind. */
function filled(form: unknown, actual: unknown): unknown {
  if (form === "{{number}}") return typeof actual === "number" ? actual : "any number";
  if (form === "{{string}}") return typeof actual === "string" ? actual : "any string";
  if (form === "{{createdAt}}") return z.iso.datetime().safeParse(actual).success ? actual : "any UTC time";
  if (Array.isArray(form))
    return form.map((item, index) => filled(item, Array.isArray(actual) ? actual[index] : undefined));
  const members = z.record(z.string(), z.unknown()).safeParse(form).data;
  if (members === undefined) return form;
  const others = z.record(z.string(), z.unknown()).safeParse(actual).data ?? {};
  return Object.fromEntries(Object.entries(members).map(([key, value]) => [key, filled(value, others[key])]));
}

/** Resolves `{{bytes:N}}`: a string with which the payload's JSON is exactly N bytes long. */
function padded(body: { payload?: unknown } | undefined): unknown {
  const payload = z
    .looseObject({ pad: z.string().regex(/^\{\{bytes:\d+\}\}$/) })
    .safeParse(body?.payload).data;
  if (payload === undefined) return body;
  const wanted = Number(payload.pad.replace(/\D/g, ""));
  const rest = Buffer.byteLength(JSON.stringify({ ...payload, pad: "" }));
  return { ...body, payload: { ...payload, pad: "x".repeat(wanted - rest) } };
}

/** Resolves `{{now}}`, `{{now+60s}}`, `{{now-60s}}` and `{{now:nanos}}`. */
function withTimes(text: string, now: number): string {
  return text.replace(/\{\{now(?:([+-]\d+)s)?(:nanos)?\}\}/g, (_, shift = "0", nanos?: string) => {
    const time = new Date(now + Number(shift) * 1_000).toISOString();
    return nanos === undefined ? time : time.replace("Z", "456789Z");
  });
}
