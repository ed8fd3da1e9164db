import { Command } from "commander";
import * as z from "zod";
import { loadAgents } from "../shared/config/load-agents.ts";
import type { Pause } from "../shared/tasks/pauses.ts";
import { CliError, EXIT } from "./errors.ts";
import type { Home } from "./home.ts";
import { common, stack, withCommon } from "./options.ts";
import type { Output } from "./output.ts";
import { type Card, type Durable, readCards, readDurables } from "./peers.ts";
import type { Place } from "./place.ts";
import { inSession } from "./session.ts";
import { table } from "./table.ts";
import { cleanLine } from "./text.ts";

/** Cards are their agents' own: what is shown of one has an end. */
const MAX_SKILLS = 1_000;

const options = common.extend({ stack: z.string().optional() });
type Options = z.infer<typeof options>;

export function agentsCommand(): Command {
  return withCommon(new Command("agents"))
    .description("show which agents there are, and whether anybody listens for them")
    .option("--stack <name>", "a deployed stack, to tell which of its agents are paused", stack)
    .action(async (given: unknown) => {
      process.exitCode = await agents(options.parse(given));
    });
}

async function agents(given: Options): Promise<number> {
  return inSession(given, async ({ nc, home, place, out }) => {
    const [cards, durables] = await Promise.all([readCards(nc), readDurables(nc)]);
    const skills = await ownSkills(home);
    const own = home.agents.map((id) => ({
      id,
      runtime: `${home.deployment}-${id}`,
      ...(skills.has(id) && { skills: skills.get(id) }),
    }));
    const paused = await pausesOf(home, place, out);
    const known = gather(own, cards, durables).map((agent) => {
      const pause = paused.get(agent.runtime);
      return pause === undefined ? agent : { ...agent, paused: pause };
    });
    for (const agent of known) out.record(recordOf(agent));
    if (known.length === 0)
      out.line("no agents: none in this folder, no cards, and nobody listens for tasks");
    else
      for (const line of table(["AGENT", "RUNTIME", "STATE", "SKILLS"], known.map(rowOf), out.width))
        out.line(line);
    return EXIT.ok;
  });
}

/** The skills of our own agents by their short ids, as their files have them; none of files that cannot be loaded. */
async function ownSkills({ agentsDir, agents }: Home): Promise<Map<string, string[]>> {
  if (agents.length === 0) return new Map();
  const loaded = await loadAgents(agentsDir).catch(() => []);
  return new Map(loaded.map(({ id, skills }) => [id, Object.keys(skills).sort()]));
}

/**
 * Which of our agents are paused, as their stack tells: the one that is named, or that of the local host that runs here.
 * Where that cannot be asked, it is said, and nothing else is missing.
 */
async function pausesOf(
  home: Home,
  named: Place | undefined,
  out: Output,
): Promise<ReadonlyMap<string, Pause>> {
  const found = new Map<string, Pause>();
  if (named === undefined && home.stack === undefined) return found;
  try {
    // The clients of AWS take long to load.
    const [{ findPlace }, open] = await Promise.all([import("./place.ts"), import("./pauses.ts")]);
    using pauses = open.pausesOf(home, named ?? (await findPlace(home)));
    const look = async (id: string) => {
      const { runtime } = pauses.agent(id);
      const pause = await pauses.pauseOf(runtime);
      if (pause !== undefined) found.set(runtime, pause);
    };
    await Promise.all(home.agents.map(look));
  } catch (error) {
    if (named !== undefined || !(error instanceof CliError)) throw error;
    out.note(`which agents are paused is not known: ${error.message}`);
  }
  return found;
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
  readonly paused?: Pause;
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
    const skills = ours && (ours.skills ?? (card && slugsOf(card, ours.id)));
    return {
      runtime,
      ours: ours !== undefined,
      ...(ours && { shortId: ours.id }),
      ...(skills && { skills }),
      ...(card && { card }),
      ...(durable && { durable }),
    };
  });
}

/** A card's skills without the channelRef before them: those of an agent of ours that is a remote one are its card's alone. */
function slugsOf({ channelRef, skills }: Card, id: string): string[] {
  const prefix = `${channelRef ?? id}/`;
  return skills.map((skill) => (skill.startsWith(prefix) ? skill.slice(prefix.length) : skill));
}

/** An agent as JSON; a pause as `pause` tells it. */
function recordOf({ paused, ...agent }: KnownAgent): object {
  if (paused === undefined) return agent;
  const { at, by, refuse } = paused;
  return { ...agent, paused: { since: new Date(at).toISOString(), by, refuse } };
}

function rowOf(agent: KnownAgent): string[] {
  const { shortId = "-", runtime, card } = agent;
  const skills = agent.skills ?? card?.skills ?? [];
  return [shortId, cleanLine(runtime, 64), stateOf(agent), cleanLine(skills.join(", "), MAX_SKILLS)];
}

/** What can honestly be said: a durable without a pull, or an old card, may be of somebody long gone. */
export function stateOf({ paused, ...of }: KnownAgent): string {
  const heard = heardOf(of);
  if (paused === undefined) return heard;
  return `${paused.refuse ? "paused, refuses new tasks" : "paused"}; ${heard}`;
}

function heardOf({ card, durable, ours }: Omit<KnownAgent, "paused">): string {
  const queue = durable && durable.waiting + durable.unacknowledged;
  const waiting = queue ? `, ${queue} ${queue === 1 ? "task waits" : "tasks wait"}` : "";
  if (durable && durable.pulling > 0) return `listening${waiting}`;
  if (card && !card.stale) return `shows a card${waiting}`;
  if (durable) return `not listening now${waiting}`;
  if (card) return "old card";
  return ours ? "not running" : "unknown";
}
