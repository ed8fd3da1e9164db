import { createParser } from "eventsource-parser";
import type { GuardedFetch } from "../../http/guarded-fetch.ts";
import { type Json, jsonDepth, readJson } from "../../wire/json.ts";
import { RemoteError } from "./errors.ts";
import { remoteError, saysAll, statusError, toldError } from "./failures.ts";
import { MAX_REMOTE_ANSWER_BYTES, MAX_REMOTE_DEPTH, MAX_REMOTE_EVENT } from "./limits.ts";

/** Of JSON-RPC, of HTTP+JSON (A2A 1.0 §11), and of streams. */
const ACCEPTS = ["application/json", "application/a2a+json", "text/event-stream"];

/**
 * The guarded client as the SDK is given it. What comes is bounded and read before the SDK sees it: it is JSON, an object,
 * and no error. So all that the SDK makes of an answer is a translation, and what it throws is about that alone.
 *
 * @param fetch `remoteFetch(…)`
 * @param deadlineMs how long an answer may take; of a stream, its head
 * @returns a `fetch` that throws RemoteError, or the reason of its caller's signal; the readers of a stream do too
 */
export function checkedFetch(
  remote: string,
  fetch: GuardedFetch,
  deadlineMs: number,
): typeof globalThis.fetch {
  return async (input, init) => {
    try {
      const answer = await fetch(input instanceof Request ? input : String(input), {
        ...init,
        accepts: ACCEPTS,
        limits: { maxAnswerBytes: MAX_REMOTE_ANSWER_BYTES, deadlineMs },
      });
      const events = answer.ok && answer.headers.get("content-type")?.startsWith("text/event-stream");
      return events ? checkedStream(remote, answer, init?.signal) : await checkedAnswer(remote, answer);
    } catch (error) {
      throw thrown(remote, error, init?.signal);
    }
  };
}

/** The caller's own reason is the caller's; all else is the exchange's. */
function thrown(remote: string, error: unknown, signal: AbortSignal | null | undefined): unknown {
  return signal?.aborted && error === signal.reason ? error : remoteError(remote, error);
}

async function checkedAnswer(remote: string, answer: Response): Promise<Response> {
  const { status, ok, headers } = answer;
  const json = readJson(await answer.bytes());
  const read = json.ok ? json.value : undefined;
  // What is no success says by its status what it is, unless it is an error of A2A that says more.
  if (!ok && (saysAll(status) || !tellsError(read?.value)))
    throw statusError(remote, status, headers.get("retry-after"));
  return new Response(checkedJson(remote, read, status), { status, headers });
}

const tellsError = (value: unknown) => typeof value === "object" && value !== null && "error" in value;

/** @throws RemoteError when it is no object, is nested too deep, or tells an error */
function checkedJson(remote: string, json: Json | undefined, status: number): string {
  if (typeof json?.value !== "object" || json.value === null || Array.isArray(json.value))
    throw new RemoteError("protocol", remote, "expected its answer to be an object of JSON", { sent: true });
  if (jsonDepth(json.text) > MAX_REMOTE_DEPTH)
    throw new RemoteError("too_large", remote, `expected JSON nested at most ${MAX_REMOTE_DEPTH} deep`, {
      sent: true,
    });
  if (!isFiniteJson(json.value))
    throw new RemoteError("protocol", remote, "expected numbers that JSON can hold again", { sent: true });
  if ("error" in json.value) throw toldError(remote, json.value.error, status);
  return json.text;
}

/** Whether none of its numbers is beyond a double's range: that reads as infinite, and cannot be written (RFC 8259 §6). */
function isFiniteJson(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  return typeof value !== "object" || value === null || Object.values(value).every(isFiniteJson);
}

function checkedStream(remote: string, answer: Response, signal: AbortSignal | null | undefined): Response {
  const events = checkedEvents(remote, answer, signal);
  return new Response(ReadableStream.from(events), { status: answer.status, headers: answer.headers });
}

/** Each event as the SDK's own reader takes it: on one line. */
async function* checkedEvents(
  remote: string,
  answer: Response,
  signal: AbortSignal | null | undefined,
): AsyncGenerator<Uint8Array> {
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  const events: string[] = [];
  const tooLarge = () =>
    new RemoteError("too_large", remote, `expected events of at most ${MAX_REMOTE_EVENT} characters`, {
      sent: true,
    });
  const parser = createParser({
    maxBufferSize: MAX_REMOTE_EVENT,
    onEvent: ({ data }) => void events.push(data),
    onError: ({ type }) => {
      if (type === "max-buffer-size-exceeded") throw tooLarge();
    },
  });
  try {
    for await (const chunk of answer.body ?? []) {
      parser.feed(utf8.decode(chunk, { stream: true }));
      for (const data of events.splice(0)) {
        if (data.length > MAX_REMOTE_EVENT) throw tooLarge();
        yield Buffer.from(`data: ${checkedEvent(remote, data)}\n\n`);
      }
    }
  } catch (error) {
    throw thrown(remote, error, signal);
  }
}

function checkedEvent(remote: string, data: string): string {
  const json = readJson(Buffer.from(data));
  const text = checkedJson(remote, json.ok ? json.value : undefined, 200);
  // Between its tokens JSON may be on several lines, within them it never is.
  return text.replaceAll(/[\r\n]/g, " ");
}
