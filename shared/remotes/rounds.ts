import { createHash } from "node:crypto";
import type { HttpFacts, Standing } from "../cards/peer-facts.ts";
import { keepProbes, keepRefreshes } from "../cards/peer-keeping.ts";
import type { PeerStore, Stored } from "../cards/peer-store.ts";
import type { RemoteConfig } from "../config/remotes.ts";
import { type Probe, probeRemote } from "./probe.ts";
import { type RefreshOptions, type RefreshResult, refreshRemote } from "./refresh.ts";
import type { SendRequest } from "./request.ts";

/** How often a card is asked for, in milliseconds. */
export const REFRESH_EVERY_MS = 600_000;
/** How often whoever does so is started, in milliseconds: a tenth of the agents each time. */
const TICK_MS = 60_000;
/** When an agent's turn has passed without it, in milliseconds since it was last seen: a start in between was late. */
const OVERDUE_MS = REFRESH_EVERY_MS + TICK_MS;
/** Agents whose cards are fetched at the same time: each may be of 256 KB, and is many times that as objects. */
const FETCHED_AT_ONCE = 16;
/** Agents that are looked after at the same time: were all a hundred silent, it would still be over within 20 seconds. */
const PROBED_AT_ONCE = 25;

interface Round {
  /** All remote agents of the operator's file. */
  readonly remotes: readonly RemoteConfig[];
  readonly store: PeerStore;
  /** How requests reach an agent, and who we are to it. */
  readonly sendTo: (remote: RemoteConfig) => SendRequest;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** How much faster than in the cloud the deployment lives; 1 if absent. */
  readonly scale?: number;
  /** Ends the round: what came until then is kept. */
  readonly signal?: AbortSignal;
}

/**
 * Whether it is an agent's turn: each in its own minute of ten, told by its name, so that not all are asked at once; at
 * once who was never asked; and who was left out when the turn was.
 *
 * @param now milliseconds since 1970
 * @param scale how much faster than in the cloud the deployment lives
 */
export function isTurn(name: string, standing: Standing | undefined, now: number, scale = 1): boolean {
  const { seen, failures } = standing ?? { failures: 0 };
  if (failures === 0 && (seen === undefined || (now - seen) * scale >= OVERDUE_MS)) return true;
  const minutes = REFRESH_EVERY_MS / TICK_MS;
  const minute = createHash("sha256").update(name).digest().readUInt32BE(0) % minutes;
  return Math.floor((now * scale) / TICK_MS) % minutes === minute;
}

/**
 * Refreshes the cards of those whose turn it is, and keeps what came of it.
 *
 * @param round.signal who was not asked until then waits for the next turn
 * @param round.only these, whether it is their turn and their cards are fresh or not: an operator wants it now
 * @returns one for each that was asked, in the order of the file
 * @throws PeersBusyError; whatever the store throws
 */
export async function refreshRound(
  round: Round & Pick<RefreshOptions, "verify"> & { readonly only?: ReadonlySet<string> },
): Promise<RefreshResult[]> {
  const { remotes, store, sendTo, now, scale, verify, signal, only } = round;
  const { facts, standings } = await known(store);
  const chosen = remotes.filter(
    ({ name }) => only?.has(name) ?? isTurn(name, standings.get(name), now(), scale),
  );
  const refresh = async (remote: RemoteConfig) => {
    if (signal?.aborted) return undefined;
    const before = { facts: facts.get(remote.name), standing: standings.get(remote.name) };
    const options = { send: sendTo(remote), now, force: only !== undefined };
    try {
      return await refreshRemote(remote, before, {
        ...options,
        ...(verify && { verify }),
        ...(signal && { signal }),
      });
    } catch (error) {
      if (signal?.aborted) return undefined;
      throw error;
    }
  };
  const results = (await eachOf(chosen, FETCHED_AT_ONCE, refresh)).filter((of) => of !== undefined);
  await keepRefreshes(store, results, namesOf(remotes));
  return results;
}

/** How an agent is, and how it was when it was looked after the time before. */
export interface Probed {
  readonly probe: Probe;
  readonly before?: Probe | undefined;
}

/**
 * Looks after all remote agents, and keeps how they were.
 *
 * @returns by name; whoever was not reached before the round was ended is not among them
 * @throws PeersBusyError; whatever the store throws
 */
export async function probeRound(
  round: Round & { readonly timeoutMs?: number },
): Promise<ReadonlyMap<string, Probed>> {
  const { remotes, store, sendTo, now, timeoutMs, signal } = round;
  if (remotes.length === 0) return new Map();
  const { facts, standings } = await known(store);
  const probes = await eachOf(remotes, PROBED_AT_ONCE, async (remote) => {
    if (signal?.aborted) return undefined;
    const { name, url } = remote;
    const path = facts.get(name)?.value.path;
    const probe = await probeRemote({
      ...{ url, path, send: sendTo(remote), now },
      ...(timeoutMs && { timeoutMs }),
    });
    return [name, { probe, before: standings.get(name)?.probe }] as const;
  });
  const found = new Map(probes.filter((of) => of !== undefined));
  const kept = new Map([...found].map(([name, { probe }]) => [name, probe]));
  await keepProbes(store, kept, namesOf(remotes));
  return found;
}

const namesOf = (remotes: readonly RemoteConfig[]) => new Set(remotes.map(({ name }) => name));

async function known(store: PeerStore) {
  const [facts, { value }] = await Promise.all([store.facts("http"), store.ledger("http")]);
  const http = [...facts].flatMap(([id, { version, value: of }]): [string, Stored<HttpFacts>][] =>
    of.transport === "http" ? [[id, { version, value: of }]] : [],
  );
  return { facts: new Map(http), standings: new Map(value.standings.map((of) => [of.id, of])) };
}

/** Does the same with each, some at a time. */
async function eachOf<T, R>(all: readonly T[], atOnce: number, act: (of: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const left = all.entries();
  const worker = async () => {
    for (const [at, of] of left) results[at] = await act(of);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, all.length) }, worker));
  return results;
}
