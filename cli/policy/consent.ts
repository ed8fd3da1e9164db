import type { AgentPolicy } from "../../shared/config/policy.ts";
import { MAX_LIST } from "../../shared/config/policy.ts";
import { listed } from "../../shared/policy/listed.ts";
import type { PolicyFields } from "../../shared/policy/runtime-policy.ts";
import type { ConsentOptions } from "../consent.ts";
import { CliError, EXIT } from "../errors.ts";
import { type Output, processOutput } from "../output.ts";
import { currentHome } from "../session.ts";
import { type Change, changeOf, make, meanwhile, tellChange } from "./change.ts";
import { type OpenPolicy, openPolicy } from "./open.ts";

/** How often a change is made anew that others came before. */
const MAX_TRIES = 5;

/** `allow`: an agent accepts the tasks of one more peer. */
export async function allow(name: string, peer: string, given: ConsentOptions): Promise<number> {
  const out = processOutput(given.json);
  using open = await openPolicy(currentHome(given), name, given.stack);
  const change = await consent(open, `allow ${peer}`, ({ acceptFromRuntimes: known }) => {
    if (known.includes(peer)) return {};
    if (known.length >= MAX_LIST)
      throw new CliError(
        EXIT.failed,
        `acceptFromRuntimes: expected at most ${MAX_LIST} peers; revoke one first`,
      );
    return { acceptFromRuntimes: [...known, peer] };
  });
  const { runtime } = open.agent;
  out.line(
    change.isMade
      ? `${runtime} accepts tasks of ${peer} already`
      : `${runtime} accepts tasks of ${peer} from now on`,
  );
  tell(open, out, peer, change);
  return EXIT.ok;
}

/** `revoke`: nothing in an agent's policy names a peer any more. */
export async function revoke(name: string, peer: string, given: ConsentOptions): Promise<number> {
  const out = processOutput(given.json);
  using open = await openPolicy(currentHome(given), name, given.stack);
  const change = await consent(open, `revoke ${peer}`, ({ acceptFromRuntimes, delegateTargets }) => ({
    ...(acceptFromRuntimes.includes(peer) && {
      acceptFromRuntimes: acceptFromRuntimes.filter((of) => of !== peer),
    }),
    ...(delegateTargets.some((of) => of.runtimeAgentId === peer) && {
      delegateTargets: delegateTargets.filter((of) => of.runtimeAgentId !== peer),
    }),
  }));
  const { runtime } = open.agent;
  out.line(
    change.isMade
      ? `nothing in the policy of ${runtime} names ${peer}`
      : `nothing in the policy of ${runtime} names ${peer} any more`,
  );
  tell(open, out, peer, change);
  return EXIT.ok;
}

/** Makes a change to the policy as it is when it is made. */
async function consent(
  open: OpenPolicy,
  command: string,
  set: (now: AgentPolicy) => PolicyFields,
): Promise<Change> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const change = await changeOf(open, (now) => ({ set: set(now), unset: [] }));
    if (change.isMade || (await make(open, change, { command })) === "changed") return change;
  }
  throw meanwhile(open.agent.runtime);
}

/** What a peer and an agent may do now, and by which part of the policy. */
function tell({ agent }: OpenPolicy, out: Output, peer: string, change: Change): void {
  const { after } = change;
  const may = { ask: mayAsk(after, peer), beAsked: mayBeAsked(after, peer) };
  const version = change.isMade ? change.base : change.base + 1;
  out.record({
    agent: agent.id,
    runtime: agent.runtime,
    peer,
    changed: !change.isMade,
    version,
    mayAsk: may.ask,
    mayBeAsked: may.beAsked,
    changes: change.changes,
  });
  tellChange(out, { changes: change.changes, risks: [], notes: [] });
  out.line(`accepted are tasks of ${listed(after.acceptFromRuntimes)}`);
  if (!after.enabled) out.line("but the agent is not enabled: new tasks are rejected as channel_not_enabled");
  else if (may.ask === "by *") out.line(`tasks of ${peer} are accepted, for those of everybody are ("*")`);
  if (after.acceptSkills.length > 0) out.line(`they may ask for ${listed(after.acceptSkills)}`);
  if (may.beAsked !== "no")
    out.line(
      `${agent.runtime} may hand tasks on to ${peer} (delegateTargets${may.beAsked === "by *" ? ', "*"' : ""})`,
    );
}

type Allowed = "no" | "by name" | "by *";

function mayAsk({ acceptFromRuntimes }: AgentPolicy, peer: string): Allowed {
  if (acceptFromRuntimes.includes(peer)) return "by name";
  return acceptFromRuntimes.includes("*") ? "by *" : "no";
}

function mayBeAsked({ delegateTargets }: AgentPolicy, peer: string): Allowed {
  if (delegateTargets.some(({ runtimeAgentId }) => runtimeAgentId === peer)) return "by name";
  return delegateTargets.some(({ runtimeAgentId }) => runtimeAgentId === "*") ? "by *" : "no";
}
