import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import * as z from "zod";
import { readDidKey } from "../../shared/cards/did-key.ts";
import { type KeptCard, readSigned, readSignedLedger } from "../../shared/cards/dynamodb-signed.ts";
import { type CardVerdict, verifyCard } from "../../shared/cards/verifying.ts";
import type { HostedAgent } from "../../shared/config/deployment.ts";
import { isShown } from "../../shared/policy/exposed.ts";
import type { TableAccess } from "../../shared/tasks/dynamodb-transaction.ts";
import { stackAgent } from "../agent-name.ts";
import { MAX_SHOWN } from "../cards.ts";
import { EXIT } from "../errors.ts";
import type { Common } from "../options.ts";
import { type Output, processOutput } from "../output.ts";
import { agentsInForce } from "../peers/policies.ts";
import { clientSettings, findPlace, type Place, reach } from "../place.ts";
import { currentHome } from "../session.ts";
import { stackHome } from "../stack-home.ts";
import { table } from "../table.ts";
import { clean, cleanLine, localTime } from "../text.ts";

/** How an agent's card is: `hidden` without one by its operator's will, `left` with one against it. */
type State = "valid" | "invalid" | "changed" | "missing" | "hidden" | "left";
const WRONG: ReadonlySet<State> = new Set(["invalid", "changed", "missing", "left"]);

interface Look {
  readonly agent: string;
  readonly runtime: string;
  readonly state: State;
  /** Why it is not as it should be, or has none. */
  readonly why: string | null;
  /** The key that has signed it. */
  readonly did: string | null;
  /** As RFC 3339. */
  readonly signedAt: string | null;
  readonly card: unknown;
}

/**
 * Shows the A2A cards that are kept for a front door, and verifies them as their readers do.
 *
 * @param name of one agent, whose card is shown in full
 */
export async function agentCards(
  given: Common & { readonly stack?: string | undefined },
  name?: string,
): Promise<number> {
  const here = currentHome(given);
  const place = await findPlace(here, given.stack);
  const home = stackHome(here, place);
  const out = processOutput(given.json);
  const one = name === undefined ? undefined : stackAgent(home, place, name);
  const agents = await agentsInForce(home, place);
  const wanted = agents.filter(({ id }) => one === undefined || id === one.id);
  const found = await looksAt(place, wanted);
  for (const of of found) out.record(of);
  if (one !== undefined) inFull(found, out);
  else if (found.length === 0) out.line(`no agents in ${home.agentsDir}`);
  else for (const line of table(HEAD, found.map(rowOf), out.width)) out.line(line);
  return found.some(({ state }) => WRONG.has(state)) ? EXIT.failed : EXIT.ok;
}

async function looksAt(place: Place, agents: readonly HostedAgent[]): Promise<Look[]> {
  const dynamodb = new DynamoDBClient(clientSettings(place, "dynamodb"));
  const access = { client: DynamoDBDocumentClient.from(dynamodb), table: place.outputs.TableName };
  try {
    return await reach(place.label, readAll(access, agents));
  } finally {
    dynamodb.destroy();
  }
}

async function readAll(access: TableAccess, agents: readonly HostedAgent[]): Promise<Look[]> {
  const did = readDidKey((await readSignedLedger(access))?.did ?? "")?.did;
  return await Promise.all(
    agents.map(async (agent) => {
      const kept = await readSigned(access, agent.runtime);
      if (kept === undefined) return look(agent, kept);
      const card = parsed(kept.card);
      return look(agent, kept, card, await verifyCard(card, did && { did }));
    }),
  );
}

function look(
  { id: agent, runtime, policy }: HostedAgent,
  kept: KeptCard | undefined,
  card?: unknown,
  verdict?: CardVerdict,
): Look {
  const shown = isShown(policy);
  const seen = (state: State, why: string | null, did: string | null = null): Look => {
    const signedAt = kept === undefined ? null : new Date(kept.signedAt).toISOString();
    return { agent, runtime, state, why, did, signedAt, card: card ?? null };
  };
  const hidden = policy.enabled ? "not discoverable" : "not enabled";
  if (kept === undefined) return shown ? seen("missing", null) : seen("hidden", hidden);
  if (!shown) return seen("left", hidden);
  switch (verdict?.state) {
    case "valid":
      return seen("valid", null, verdict.key);
    case "changed":
      return seen("changed", "by another key than the deployment's", verdict.offered);
    case "invalid":
      return seen("invalid", verdict.reason);
    default:
      return seen("invalid", "signature_missing");
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const HEAD = ["AGENT", "CARD", "STATE", "SIGNED", "SKILLS"];
const skills = z.looseObject({ skills: z.array(z.looseObject({ id: z.string() })) });

function rowOf({ agent, runtime, state, why, signedAt, card }: Look): string[] {
  const listed = skills.safeParse(card).data?.skills.map(({ id }) => id) ?? [];
  return [
    agent,
    runtime,
    why === null ? state : `${state}: ${why}`,
    signedAt === null ? "-" : localTime(new Date(signedAt)),
    cleanLine(listed.join(", "), MAX_SHOWN),
  ];
}

function inFull(found: readonly Look[], out: Output): void {
  for (const { runtime, state, why, did, signedAt, card } of found) {
    if (card !== null) out.line(clean(JSON.stringify(card, null, 2)));
    const by = did === null ? "" : `, by ${did}`;
    const at = signedAt === null ? "" : `, signed ${localTime(new Date(signedAt))}`;
    out.line(`${runtime}: ${state}${why === null ? "" : ` (${why})`}${by}${at}`);
  }
}
