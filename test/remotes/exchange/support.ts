import assert from "node:assert/strict";
import { allowList, type GuardOptions } from "../../../shared/http/index.ts";
import {
  type Exchange,
  type ExchangeLimits,
  type ExchangeOptions,
  type ExchangeTrace,
  type Outgoing,
  openExchange,
  RemoteError,
  type RemoteErrorCode,
  remoteFetch,
  type Seen,
  type Started,
} from "../../../shared/remotes/exchange/index.ts";
import { fetchCard } from "../../../shared/remotes/fetch-card.ts";
import type { RemoteServer } from "../servers/index.ts";

type Remote = Parameters<typeof remoteFetch>[0] & ExchangeOptions["remote"];

export const TRACE: ExchangeTrace = {
  correlationId: "corr-1",
  parentId: "msg-0",
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  caller: "acme-audit",
  hops: 2,
};

/** Nobody ends it. */
export const never = new AbortController().signal;

interface Talk {
  readonly remote?: Partial<Remote>;
  readonly credential?: string;
  /** `false` to speak without a card. */
  readonly card?: boolean;
  readonly limits?: Partial<ExchangeLimits>;
  readonly guard?: GuardOptions;
  readonly before?: ExchangeOptions["before"];
}

/** Speaks with a server as a function does: by the card that it shows, and with nothing allowed but its origin. */
export async function talk(server: Pick<RemoteServer, "url" | "origin">, of: Talk = {}): Promise<Exchange> {
  const remote: Remote = {
    name: "auditor",
    url: server.url,
    headers: {},
    streaming: false,
    auth: undefined,
    ...of.remote,
  };
  const guard = { allow: allowList([server.origin]), ...of.guard };
  const facts = of.card === false ? undefined : { url: server.url, card: await cardOf(server.url, guard) };
  const fetch = remoteFetch(remote, of.credential, guard);
  return openExchange({ remote, facts, fetch, trace: TRACE, limits: of.limits, before: of.before });
}

async function cardOf(url: string, guard: GuardOptions) {
  const send = remoteFetch({ url, auth: undefined }, undefined, guard);
  const found = await fetchCard({ url, send, now: Date.now });
  assert.ok(found.kind === "card", found.kind === "failed" ? found.reason : "");
  return found.card;
}

let messages = 0;
/** A message whose text is a script (servers/script.ts), in a conversation of its own. */
export function message(text: string, over: Partial<Outgoing> = {}): Outgoing {
  const messageId = `m-${++messages}`;
  return { messageId, contextId: `c-${messageId}`, skill: "script", parts: [{ text }], ...over };
}

/** All of what comes, in order. */
export async function collect<T>(from: AsyncIterable<T> | Iterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const of of from) all.push(of);
  return all;
}

/** All that is said from the first thing to the last. */
export async function allOf({ seen, rest }: Started): Promise<Seen[]> {
  return [seen, ...(await collect(rest ?? []))];
}

/** Asks for a task until it is as it should be. */
export async function until(exchange: Exchange, taskId: string, state: Seen["state"]): Promise<Seen> {
  for (;;) {
    const seen = await exchange.get(taskId, never);
    if (seen.state === state) return seen;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

export function idOf({ taskId }: Seen): string {
  assert.ok(taskId !== undefined, "there is a task");
  return taskId;
}

/** What a promise fails with. */
export async function failure(promise: Promise<unknown>): Promise<RemoteError> {
  const error = await promise.then(
    () => assert.fail("it was to fail"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof RemoteError, String(error));
  return error;
}

/** That a promise fails so; the message never holds what the agent has written. */
export async function assertFails(
  promise: Promise<unknown>,
  code: RemoteErrorCode,
  more: { readonly sent?: boolean; readonly message?: RegExp } = {},
): Promise<RemoteError> {
  const error = await failure(promise);
  assert.equal(error.code, code, error.message);
  if (more.sent !== undefined) assert.equal(error.sent, more.sent, error.message);
  if (more.message !== undefined) assert.match(error.message, more.message);
  assert.doesNotMatch(error.message, /SECRET/);
  return error;
}
