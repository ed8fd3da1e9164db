import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { lookThrough, MAX_LOOKED_AT } from "../../shared/cards/look-through.ts";
import { keepLook } from "../../shared/cards/peer-keeping.ts";
import { natsStatus } from "../../shared/cards/peer-status.ts";
import type { PeerStore } from "../../shared/cards/peer-store.ts";
import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import { lookReader } from "../../shared/nats/permissions.ts";
import type { Telemetry } from "../../shared/telemetry/index.ts";

/** How long the server may take to answer, in milliseconds. */
const TIMEOUT_MS = 5_000;

/** What a look at the peers on NATS needs. */
export interface LookDeps {
  readonly connection: () => Promise<NatsConnection>;
  readonly store: PeerStore;
  readonly deployment: Pick<DeploymentConfig, "deployment" | "agents">;
  readonly telemetry: Pick<Telemetry, "measure" | "warn">;
  readonly now: () => number;
}

/**
 * Looks who else shows a card on NATS, and keeps what is new of that.
 *
 * @throws when NATS or the table is out of reach, or others have changed what is known again and again
 */
export async function lookForPeers(deps: LookDeps): Promise<void> {
  const { connection, store, deployment, telemetry, now } = deps;
  const nc = await connection();
  const options = { timeout: TIMEOUT_MS, checkAPI: false };
  const jsm = await jetstreamManager(nc, options);
  const reader = lookReader(deployment.deployment);
  const look = await lookThrough(jetstream(nc, options), jsm, { reader, now });
  if (look.entries.length >= MAX_LOOKED_AT)
    telemetry.warn("the bucket of cards may hold more live peers than are looked at");
  const own = new Set(deployment.agents.map(({ runtime }) => runtime));
  const { known } = await keepLook(store, { ...look, own });
  const live = known.sightings.filter((of) => natsStatus(of, known.lookedAt, look.at).state === "live");
  telemetry.measure("PeersLive", live.length);
  telemetry.measure("PeersStale", known.sightings.length - live.length);
  telemetry.measure("PeersAmiss", known.amiss.length);
}
