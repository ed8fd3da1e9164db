import type { NatsConnection } from "@nats-io/transport-node";
import { Command } from "commander";
import * as z from "zod";
import { STALE_AFTER_MS } from "../shared/cards/bucket-facts.ts";
import type { LookedAt } from "../shared/cards/peer-look.ts";
import { recordFaults } from "../shared/cards/validate.ts";
import type { HostedAgent } from "../shared/config/deployment.ts";
import { isShown } from "../shared/policy/exposed.ts";
import { EXIT } from "./errors.ts";
import type { Home } from "./home.ts";
import { common, stack, withCommon } from "./options.ts";
import type { Output } from "./output.ts";
import { rulesOf } from "./peers/policies.ts";
import { readBucket } from "./peers.ts";
import type { Place } from "./place.ts";
import { inSession } from "./session.ts";
import { table } from "./table.ts";
import { cleanLine } from "./text.ts";

/** What is shown of a card's faults and skills, in characters. */
export const MAX_SHOWN = 1_000;

const options = common.extend({
  stack: z.string().optional(),
  agentCard: z.union([z.literal(true), z.string()]).optional(),
});

export function cardsCommand(): Command {
  return withCommon(new Command("cards"))
    .description("show our agents' cards as peers find them, and what is wrong with them")
    .option("--stack <name>", "a deployed stack, on whose NATS to look, by whose policies", stack)
    .option(
      "--agent-card [agent]",
      "their signed A2A cards instead, as the stack keeps them; one agent's in full",
    )
    .action(async (given: unknown) => {
      const { agentCard, ...rest } = options.parse(given);
      process.exitCode = await (agentCard === undefined
        ? inSession(rest, ({ nc, home, place, out }) => cards(nc, home, place, out))
        : // The clients of AWS take long to load.
          (await import("./cards/agent-cards.ts")).agentCards(
            rest,
            agentCard === true ? undefined : agentCard,
          ));
    });
}

async function cards(nc: NatsConnection, home: Home, place: Place | undefined, out: Output): Promise<number> {
  const { agents } = await rulesOf(home, place, out);
  const runtimes = agents.map(({ runtime }) => runtime);
  const { entries } = await readBucket(nc, runtimes);
  const stored = new Map(entries.map((entry) => [entry.key, entry]));
  const found = agents.map((agent) => lookAtCard(agent, stored.get(agent.runtime)));
  for (const card of found) out.record(card);
  if (found.length === 0) out.line(`no agents in ${home.agentsDir}`);
  else
    for (const line of table(["AGENT", "CARD", "STATE", "AGE", "SKILLS"], found.map(rowOf), out.width))
      out.line(line);
  for (const { runtime, faults } of found)
    for (const fault of faults) out.line(`${runtime}: ${cleanLine(fault, MAX_SHOWN)}`);
  return found.some(({ state }) => WRONG.has(state)) ? EXIT.failed : EXIT.ok;
}

/** How a card is: `hidden` without one by its operator's will, `left` with one against it. */
export type CardState = "valid" | "invalid" | "stale" | "missing" | "hidden" | "left";
const WRONG: ReadonlySet<CardState> = new Set(["invalid", "stale", "missing", "left"]);
const WORDS: Readonly<Record<CardState, string>> = {
  valid: "valid",
  invalid: "invalid: some reader refuses it, and perhaps all behind it",
  stale: "stale",
  missing: "missing",
  hidden: "none: not enabled, or not discoverable",
  left: "left over: not enabled, or not discoverable",
};

interface Look {
  readonly agent: string;
  readonly runtime: string;
  readonly state: CardState;
  /** How old the card is, in milliseconds. */
  readonly ageMs: number | null;
  readonly faults: readonly string[];
  /** The card as JSON, if it is any. */
  readonly record: unknown;
}

const times = z.looseObject({ expiresAt: z.string().optional().catch(undefined) });
const skills = z.looseObject({
  card: z.looseObject({ skills: z.array(z.looseObject({ id: z.string() })) }),
});

/** How the card of an agent is, as it lies in the bucket. */
export function lookAtCard(
  { id: agent, runtime, policy }: HostedAgent,
  { at, bytes }: Partial<Pick<LookedAt, "at" | "bytes">> = {},
): Look {
  if (at === undefined || bytes === undefined) {
    const state = isShown(policy) ? "missing" : "hidden";
    return { agent, runtime, state, ageMs: null, faults: [], record: null };
  }
  const now = Date.now();
  const ageMs = Math.max(0, now - at);
  const faults = recordFaults(runtime, bytes);
  const record = parsed(bytes);
  const { expiresAt } = times.safeParse(record).data ?? {};
  const isOver = expiresAt !== undefined && Date.parse(expiresAt) < now;
  const state = !isShown(policy)
    ? "left"
    : faults.length > 0
      ? "invalid"
      : ageMs > STALE_AFTER_MS || isOver
        ? "stale"
        : "valid";
  return { agent, runtime, state, ageMs, faults, record };
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}

function rowOf({ agent, runtime, state, ageMs, record }: Look): string[] {
  const listed = skills.safeParse(record).data?.card.skills.map(({ id }) => id) ?? [];
  const age = ageMs === null ? "-" : `${Math.round(ageMs / 1_000)} s`;
  return [agent, runtime, WORDS[state], age, cleanLine(listed.join(", "), MAX_SHOWN)];
}
