import type { HttpLedger } from "../../shared/cards/peer-facts.ts";
import { httpStatus } from "../../shared/cards/peer-status.ts";
import type { PeerStore } from "../../shared/cards/peer-store.ts";
import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import type { RemoteConfig } from "../../shared/config/remotes.ts";
import type { Timing } from "../../shared/config/timing.ts";
import type { CredentialSources } from "../../shared/remotes/credentials.ts";
import type { RefreshResult } from "../../shared/remotes/refresh.ts";
import { type Probed, probeRound, refreshRound } from "../../shared/remotes/rounds.ts";
import { verifyRemoteCard } from "../../shared/remotes/verify.ts";
import { waysTo } from "../../shared/remotes/ways.ts";
import { errorFields, type Telemetry } from "../../shared/telemetry/index.ts";

/** What the rounds through the remote agents need. */
export interface RemotesDeps {
  readonly remotes: readonly RemoteConfig[];
  readonly outbound: DeploymentConfig["outbound"];
  readonly store: PeerStore;
  readonly sources: CredentialSources;
  readonly telemetry: Telemetry;
  readonly timing: Pick<Timing, "scale">;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Names this run to the other side. */
  readonly correlationId: string;
  /** Ends the rounds; what came until then is kept. */
  readonly signal: AbortSignal;
}

/**
 * Goes round the remote agents: fetches the cards of those whose turn it is, and looks after all of them. What goes wrong
 * in one round is told, and does not touch the other.
 */
export async function goRound(deps: RemotesDeps): Promise<void> {
  const round = await roundOf(deps);
  await Promise.all([
    attempted(deps, "refresh", async () => tellRefreshes(deps, await refreshRound(round))),
    attempted(deps, "probe", async () => tellProbes(deps, await probeRound(round))),
  ]);
  await attempted(deps, "count", async () => tellStandings(deps, (await deps.store.ledger("http")).value));
}

/**
 * Fetches cards now, whoever's turn it is.
 *
 * @param only names of remote agents
 * @throws PeersBusyError; whatever the store throws
 */
export async function refreshNow(deps: RemotesDeps, only: ReadonlySet<string>): Promise<RefreshResult[]> {
  const results = await refreshRound({ ...(await roundOf(deps)), only });
  tellRefreshes(deps, results);
  return results;
}

async function roundOf({ remotes, store, telemetry, timing, now, signal, ...of }: RemotesDeps) {
  const { sendTo, missing } = await waysTo(remotes, of);
  for (const [remote, problem] of missing)
    telemetry.error("a remote agent's credentials cannot be had", { remote, ...errorFields(problem) });
  return { remotes, store, sendTo, now, signal, verify: verifyRemoteCard, scale: timing.scale };
}

async function attempted(
  { telemetry }: RemotesDeps,
  round: "refresh" | "probe" | "count",
  act: () => Promise<void>,
): Promise<void> {
  try {
    await act();
  } catch (error) {
    telemetry.error("a round through the remote agents has failed", { round, ...errorFields(error) });
    telemetry.count("PeerRoundsFailed", 1, { round });
  }
}

function tellRefreshes({ telemetry }: RemotesDeps, results: readonly RefreshResult[]): void {
  const asked = results.filter(({ outcome }) => outcome !== "fresh");
  const failed = asked.filter(({ outcome }) => outcome === "failed");
  for (const { name: remote, warning } of failed)
    telemetry.warn("a remote agent's card cannot be refreshed", { remote, reason: warning });
  for (const { name: remote, outcome, added, removed } of results)
    if (outcome === "updated")
      telemetry.info("a remote agent's card has changed", { remote, added, removed });
  if (asked.length === 0) return;
  const sum = (of: "added" | "removed") => asked.reduce((all, result) => all + result[of].length, 0);
  telemetry.count("RemotesRefreshed", asked.length - failed.length);
  telemetry.count("RemotesFailed", failed.length);
  telemetry.count("RemoteSkillsAdded", sum("added"));
  telemetry.count("RemoteSkillsRemoved", sum("removed"));
}

/** Tells what has changed since the time before: an agent that is away for a day is not news each minute. */
function tellProbes({ telemetry }: RemotesDeps, found: ReadonlyMap<string, Probed>): void {
  for (const [remote, { probe, before }] of found) {
    telemetry.measure("RemoteLatency", probe.latencyMs);
    if (probe.reachable === (before?.reachable ?? true)) continue;
    if (probe.reachable) telemetry.info("a remote agent answers again", { remote });
    else telemetry.warn("a remote agent does not answer", { remote, reason: probe.error });
  }
  const unreachable = [...found.values()].filter(({ probe }) => !probe.reachable);
  telemetry.measure("RemotesUnreachable", unreachable.length);
}

/** Tells how it stands with all of them, in the deployment's own time. */
function tellStandings({ telemetry, timing, now }: RemotesDeps, { standings }: HttpLedger): void {
  const stale = standings.filter((of) => httpStatus(of).state === "stale");
  telemetry.measure("RemotesStale", stale.length);
  const ages = standings.flatMap(({ seen }) => (seen === undefined ? [] : [now() - seen]));
  if (ages.length > 0) telemetry.measure("RemoteCardAge", Math.max(0, ...ages) * timing.scale);
}
