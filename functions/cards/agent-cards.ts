import { createHash } from "node:crypto";
import { type AgentCard, agentCard } from "../../shared/cards/agent-card.ts";
import { CanonicalError } from "../../shared/cards/canonical.ts";
import {
  keepSigned,
  readLedger,
  type SignedChange,
  type SignedLedger,
} from "../../shared/cards/dynamodb-signed.ts";
import type { KeyVault } from "../../shared/cards/keys.ts";
import { ensureKey } from "../../shared/cards/keys.ts";
import { CardError, signCard, signedText } from "../../shared/cards/signing.ts";
import type { SigningKey } from "../../shared/cards/signing-key.ts";
import type { DeploymentConfig, HostedAgent } from "../../shared/config/deployment.ts";
import { isShown } from "../../shared/policy/exposed.ts";
import type { TableAccess } from "../../shared/tasks/dynamodb-transaction.ts";
import { errorFields, type Telemetry } from "../../shared/telemetry/index.ts";
import type { Found } from "./cards.ts";

/** What signing needs. */
export interface AgentCardsDeps {
  /**
   * Where the key is; nothing for a function that signs nothing.
   *
   * @param fresh whether it is read anew, whatever is kept in memory
   */
  readonly vault: (fresh: boolean) => Promise<KeyVault | undefined>;
  readonly access: TableAccess;
  readonly deployment: Pick<DeploymentConfig, "nats">;
  /** Where NATS is, as URLs. */
  readonly servers: readonly string[];
  readonly telemetry: Telemetry;
  readonly now: () => number;
}

/** A card that is to be there, and the digest of what is signed of it. */
interface Wanted {
  readonly runtime: string;
  readonly card: AgentCard;
  readonly digest: string;
}

/**
 * Signs the agents' A2A cards and keeps them where a front door finds them (docs/table.md). Of what has not changed since
 * the last run nothing is signed or written. A run that ends anywhere leaves what was there, or all of what it has made:
 * the key is made before the first card, and the next run signs by it.
 *
 * @param found what the run has found, whose ledger tells what was signed
 * @throws when the key, or the table, cannot be had
 */
export async function keepAgentCards(deps: AgentCardsDeps, found: Found): Promise<void> {
  const base = readLedger(found.signed);
  const key = await keyFor(deps, base);
  if (key === undefined) return;
  const wanted = found.agents.filter(({ policy }) => isShown(policy)).flatMap((of) => cardOf(deps, of, key));
  const change = await changeOf(deps, base, key, wanted);
  if (change.cards.length + change.gone.length === 0) return;
  const kept = await keepSigned(deps.access, base, change);
  if (!kept) deps.telemetry.info("another run has signed the cards meanwhile");
}

/**
 * The current key, which is made if there is none. One that others have signed by meanwhile is its successor: then what is
 * kept in memory is out of date, and no card may be signed by it again, whose readers have followed to the new one.
 */
async function keyFor(
  { vault, now }: AgentCardsDeps,
  base: SignedLedger | undefined,
): Promise<SigningKey | undefined> {
  const known = await vault(false);
  if (known === undefined) return undefined;
  const key = await ensureKey(known, new Date(now()));
  if (base === undefined || base.did === key.did) return key;
  return await ensureKey((await vault(true)) ?? known, new Date(now()));
}

/** An agent's card, if it can be signed. */
function cardOf(deps: AgentCardsDeps, agent: HostedAgent, identity: SigningKey): Wanted[] {
  const { deployment, servers, telemetry } = deps;
  const { runtime } = agent;
  try {
    const card = agentCard(agent, deployment, { identity, servers });
    return [{ runtime, card, digest: createHash("sha256").update(signedText(card)).digest("hex") }];
  } catch (error) {
    if (!(error instanceof CardError || error instanceof CanonicalError)) throw error;
    telemetry.error("a card cannot be signed", { runtime, ...errorFields(error) });
    telemetry.count("CardsWithheld");
    return [];
  }
}

async function changeOf(
  { now }: AgentCardsDeps,
  base: SignedLedger | undefined,
  key: SigningKey,
  wanted: readonly Wanted[],
): Promise<SignedChange> {
  const digests = base?.digests ?? {};
  const changed = wanted.filter(({ runtime, digest }) => digests[runtime] !== digest);
  const runtimes = new Set(wanted.map(({ runtime }) => runtime));
  return {
    did: key.did,
    cards: await Promise.all(
      changed.map(async ({ runtime, card, digest }) => ({
        runtime,
        card: JSON.stringify(await signCard(card, key)),
        digest,
        signedAt: now(),
      })),
    ),
    gone: Object.keys(digests).filter((runtime) => !runtimes.has(runtime)),
  };
}
