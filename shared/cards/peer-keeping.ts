import { isDeepStrictEqual } from "node:util";
import type { Probe } from "../remotes/probe.ts";
import type { RefreshResult } from "../remotes/refresh.ts";
import type { HttpLedger, Standing } from "./peer-facts.ts";
import { type AfterLook, afterLook, type Look, SEEN_EVERY_MS } from "./peer-look.ts";
import type { PeerStore } from "./peer-store.ts";

/** Tries of a write of the ledger while others write it, too. */
export const MAX_LEDGER_TRIES = 5;

/** Others have written the ledger again and again; the next run finds all of it once more. */
export class PeersBusyError extends Error {
  override readonly name = "PeersBusyError";
}

/**
 * Keeps what a look through the bucket of cards has found.
 *
 * @returns what was written; nothing when nothing has changed
 * @throws PeersBusyError
 */
export async function keepLook(store: PeerStore, look: Look): Promise<AfterLook> {
  return insist(async () => {
    const [known, { version, value }] = await Promise.all([store.facts("nats"), store.ledger("nats")]);
    const after = afterLook(known, value, look);
    // The ledger first: who is not in it is not there, and facts of nobody are forgotten by the next look.
    if (after.ledger !== undefined && !(await store.putLedger("nats", after.ledger, version)))
      return undefined;
    // Whoever has changed facts meanwhile has looked as well.
    for (const facts of after.put) await store.putFacts(facts, known.get(facts.id)?.version ?? 0);
    for (const id of after.forget) await store.forget({ transport: "nats", id }, known.get(id)?.version ?? 0);
    return after;
  });
}

/**
 * Keeps what came of refreshing cards. Facts are written only where they have changed, and how it stands with the agents
 * where that has changed, or was last written a while ago.
 *
 * @param names all agents that the operator's file has: what is kept of others is forgotten
 * @throws PeersBusyError
 */
export async function keepRefreshes(
  store: PeerStore,
  results: readonly RefreshResult[],
  names: ReadonlySet<string>,
): Promise<void> {
  // Whoever has changed it meanwhile has refreshed it as well.
  for (const { facts, version } of results) if (facts !== undefined) await store.putFacts(facts, version);
  const known = await store.facts("http");
  for (const [id, { version }] of known)
    if (!names.has(id)) await store.forget({ transport: "http", id }, version);
  const news = new Map(results.map(({ standing }) => [standing.id, standing]));
  await keepStandings(store, names, (before) => {
    const after = news.get(before.id);
    return after === undefined ? before : { ...after, ...(before.probe && { probe: before.probe }) };
  });
}

/**
 * Keeps how agents over HTTP were when they were looked after.
 *
 * @param names as of {@link keepRefreshes}
 * @throws PeersBusyError
 */
export async function keepProbes(
  store: PeerStore,
  probes: ReadonlyMap<string, Probe>,
  names: ReadonlySet<string>,
): Promise<void> {
  await keepStandings(store, names, (before) => {
    const probe = probes.get(before.id);
    return probe === undefined ? before : { ...before, probe };
  });
}

async function keepStandings(
  store: PeerStore,
  names: ReadonlySet<string>,
  change: (before: Standing) => Standing,
): Promise<void> {
  await insist(async () => {
    const { version, value } = await store.ledger("http");
    const before = new Map(value.standings.map((of) => [of.id, of]));
    const standings = [...names].sort().map((id) => change(before.get(id) ?? { id, failures: 0 }));
    const after = { standings: standings.filter((of) => before.has(of.id) || isAnything(of)) };
    if (!isWorthWriting(value, after)) return true;
    return (await store.putLedger("http", after, version)) || undefined;
  });
}

function isAnything({ failures, seen, probe }: Standing): boolean {
  return failures > 0 || seen !== undefined || probe !== undefined;
}

/** Whether more has changed than when an agent was last seen, or that is a while ago. */
function isWorthWriting(before: HttpLedger, after: HttpLedger): boolean {
  const times = new Map(before.standings.map(({ id, seen }) => [id, seen ?? 0]));
  const settled = after.standings.map((of) => {
    const seen = times.get(of.id);
    return seen !== undefined && of.seen !== undefined && Math.abs(of.seen - seen) < SEEN_EVERY_MS
      ? { ...of, seen }
      : of;
  });
  const asStored: unknown = JSON.parse(JSON.stringify({ standings: settled }));
  return !isDeepStrictEqual(before, asStored);
}

async function insist<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < MAX_LEDGER_TRIES; tries++) {
    const done = await attempt();
    if (done !== undefined) return done;
  }
  throw new PeersBusyError(`what is known of peers was changed by others ${MAX_LEDGER_TRIES} times in a row`);
}
