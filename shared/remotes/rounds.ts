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
/** Agents that are asked at the same time: were all a hundred silent, a round of probes would still be over in time. */
const AT_ONCE = 16;

interface Round {
  /** All remote agents of the operator's file. */
  readonly remotes: readonly RemoteConfig[];
  readonly store: PeerStore;
  /** How requests reach an agent, and who we are to it. */
  readonly sendTo: (remote: RemoteConfig) => SendRequest;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Whether it is an agent's turn: each in its own minute of ten, told by its name, so that not all are asked at once; and
 * at once who was never asked.
 */
export function isTurn(name: string, standing: Standing | undefined, now: number): boolean {
  if (standing === undefined || (standing.seen === undefined && standing.failures === 0)) return true;
  const minutes = REFRESH_EVERY_MS / TICK_MS;
  const minute = createHash("sha256").update(name).digest().readUInt32BE(0) % minutes;
  return Math.floor(now / TICK_MS) % minutes === minute;
}

/**
 * Refreshes the cards of those whose turn it is, and keeps what came of it.
 *
 * @param round.signal ends the round: what came until then is kept, who was not asked waits for the next turn
 * @param round.only these, whether it is their turn and their cards are fresh or not: an operator wants it now
 * @returns one for each that was asked, in the order of the file
 * @throws PeersBusyError; whatever the store throws
 */
export async function refreshRound(
  round: Round & Pick<RefreshOptions, "verify" | "signal"> & { readonly only?: ReadonlySet<string> },
): Promise<RefreshResult[]> {
  const { remotes, store, sendTo, now, verify, signal, only } = round;
  const { facts, standings } = await known(store);
  const chosen = remotes.filter(({ name }) => only?.has(name) ?? isTurn(name, standings.get(name), now()));
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
  const results = (await eachOf(chosen, refresh)).filter((of) => of !== undefined);
  await keepRefreshes(store, results, namesOf(remotes));
  return results;
}

/**
 * Looks after all remote agents, and keeps how they were.
 *
 * @throws PeersBusyError; whatever the store throws
 */
export async function probeRound(
  round: Round & { readonly timeoutMs?: number },
): Promise<ReadonlyMap<string, Probe>> {
  const { remotes, store, sendTo, now, timeoutMs } = round;
  if (remotes.length === 0) return new Map();
  const { facts } = await known(store);
  const probes = await eachOf(remotes, async (remote) => {
    const { name, url } = remote;
    const path = facts.get(name)?.value.path;
    const probe = await probeRemote({
      url,
      path,
      send: sendTo(remote),
      now,
      ...(timeoutMs && { timeoutMs }),
    });
    return [name, probe] as const;
  });
  const found = new Map(probes);
  await keepProbes(store, found, namesOf(remotes));
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
async function eachOf<T, R>(all: readonly T[], act: (of: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const left = all.entries();
  const worker = async () => {
    for (const [at, of] of left) results[at] = await act(of);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, all.length) }, worker));
  return results;
}
