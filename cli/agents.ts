import { join } from "node:path";
import { Command } from "commander";
import { loadAgents } from "../shared/config/load-agents.ts";
import { EXIT } from "./errors.ts";
import type { Home } from "./home.ts";
import { type Common, common, withCommon } from "./options.ts";
import { type Card, type Durable, readCards, readDurables } from "./peers.ts";
import { inSession } from "./session.ts";
import { table } from "./table.ts";
import { cleanLine } from "./text.ts";

/** Cards are their agents' own: what is shown of one has an end. */
const MAX_SKILLS = 1_000;

export function agentsCommand(): Command {
  return withCommon(new Command("agents"))
    .description("show which agents there are, and whether anybody listens for them")
    .action(async (given: unknown) => {
      process.exitCode = await agents(common.parse(given));
    });
}

async function agents(given: Common): Promise<number> {
  return inSession(given, async ({ nc, home, out }) => {
    const [cards, durables] = await Promise.all([readCards(nc), readDurables(nc)]);
    const skills = await ownSkills(home);
    const own = home.agents.map((id) => ({
      id,
      runtime: `${home.deployment}-${id}`,
      ...(skills.has(id) && { skills: skills.get(id) }),
    }));
    const known = gather(own, cards, durables);
    for (const agent of known) out.record(agent);
    if (known.length === 0)
      out.line("no agents: none in this folder, no cards, and nobody listens for tasks");
    else
      for (const line of table(["AGENT", "RUNTIME", "STATE", "SKILLS"], known.map(rowOf), out.width))
        out.line(line);
    return EXIT.ok;
  });
}

/** The skills of our own agents by their short ids, as their files have them; none of files that cannot be loaded. */
async function ownSkills({ folder, agents }: Home): Promise<Map<string, string[]>> {
  if (agents.length === 0) return new Map();
  const loaded = await loadAgents(join(folder, "agents")).catch(() => []);
  return new Map(loaded.map(({ id, skills }) => [id, Object.keys(skills).sort()]));
}

/** What is known of an agent, from each of the places that tell. */
export interface KnownAgent {
  readonly runtime: string;
  /** The name by which `ask` finds it without more. */
  readonly shortId?: string;
  /** It is in this folder's `agents/` or `agents.yaml`. */
  readonly ours: boolean;
  /** The slugs of its skills, of one that is ours. */
  readonly skills?: readonly string[];
  readonly card?: Card;
  readonly durable?: Durable;
}

/** Brings the places together by runtime id; ours first, then by name. */
export function gather(
  own: readonly {
    readonly id: string;
    readonly runtime: string;
    readonly skills?: readonly string[] | undefined;
  }[],
  cards: readonly Card[],
  durables: readonly Durable[],
): KnownAgent[] {
  const runtimes = new Set([
    ...own.map(({ runtime }) => runtime),
    ...cards.map(({ agentId }) => agentId).sort(),
    ...durables.map(({ runtime }) => runtime).sort(),
  ]);
  return [...runtimes].map((runtime) => {
    const ours = own.find((agent) => agent.runtime === runtime);
    const card = cards.find(({ agentId }) => agentId === runtime);
    const durable = durables.find((of) => of.runtime === runtime);
    return {
      runtime,
      ours: ours !== undefined,
      ...(ours && { shortId: ours.id }),
      ...(ours?.skills && { skills: ours.skills }),
      ...(card && { card }),
      ...(durable && { durable }),
    };
  });
}

function rowOf(agent: KnownAgent): string[] {
  const { shortId = "-", runtime, card } = agent;
  const skills = agent.skills ?? card?.skills ?? [];
  return [shortId, cleanLine(runtime, 64), stateOf(agent), cleanLine(skills.join(", "), MAX_SKILLS)];
}

/** What can honestly be said: a durable without a pull, or an old card, may be of somebody long gone. */
export function stateOf({ card, durable, ours }: KnownAgent): string {
  const queue = durable && durable.waiting + durable.unacknowledged;
  const waiting = queue ? `, ${queue} ${queue === 1 ? "task waits" : "tasks wait"}` : "";
  if (durable && durable.pulling > 0) return `listening${waiting}`;
  if (card && !card.stale) return `shows a card${waiting}`;
  if (durable) return `not listening now${waiting}`;
  if (card) return "old card";
  return ours ? "not running" : "unknown";
}
