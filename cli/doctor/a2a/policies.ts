import type { LegacyField } from "../../../shared/config/legacy-policy.ts";
import type { AgentPolicy } from "../../../shared/config/policy.ts";
import { isWelcome } from "../../../shared/policy/exposed.ts";
import { listed } from "../../../shared/policy/listed.ts";
import { type Finding, ok, warning, wrong } from "../finding.ts";

/** An agent of ours, with its policy as the file has it and as it is in force. */
export interface Governed {
  readonly id: string;
  readonly runtime: string;
  readonly written: AgentPolicy;
  readonly policy: AgentPolicy;
}

/** Whether the agents are as peers can work with them: what a cut-over from another runtime looks at (docs/policy.md). */
export function policyFindings(agents: readonly Governed[]): Finding[] {
  if (agents.length === 0)
    return [warning("policies", "there is no agent: nobody can be asked", "write one: ./sluice init")];
  const amiss = agents.flatMap((of) => [...amissWith(of), ...deafTo(of, agents)]);
  const count = (is: (of: Governed) => boolean) => agents.filter(is).length;
  const enabled = count(({ policy }) => policy.enabled);
  const found = count(({ policy }) => policy.enabled && policy.discoverable);
  return [
    ...amiss,
    ok("policies", `${enabled} of ${agents.length} agents take tasks, ${found} of them are to be found`),
  ];
}

function amissWith({ id, runtime, policy, written }: Governed): Finding[] {
  const part = `policy of ${runtime}`;
  const findings: Finding[] = [];
  if (policy.enabled && policy.acceptFromRuntimes.length === 0)
    findings.push(
      wrong(part, "it takes tasks of nobody: acceptFromRuntimes is empty", `./sluice allow ${id} PEER`),
    );
  if (policy.allowMemoryWrite)
    findings.push(
      warning(
        part,
        "remote tasks may write its memory: allowMemoryWrite",
        `./sluice policy plan ${id} --set allowMemoryWrite=false, unless that is meant`,
      ),
    );
  // The bridge reads events of those alone that the file lets delegate (docs/policy.md).
  if (policy.delegateTargets.length > 0 && written.delegateTargets.length === 0)
    findings.push(
      wrong(
        part,
        "delegateTargets is set in the table alone: it hears nothing of what it hands on",
        `name ${listed([...new Set(policy.delegateTargets.map((of) => of.runtimeAgentId))])} in agents.yaml as well, and deploy again`,
      ),
    );
  return findings;
}

/** Those of our own that an agent hands tasks on to by name, and that reject each of these. */
function deafTo({ runtime, policy }: Governed, agents: readonly Governed[]): Finding[] {
  const targets = new Set(policy.delegateTargets.map((of) => of.runtimeAgentId));
  return agents
    .filter((of) => targets.has(of.runtime) && of.policy.enabled && !isWelcome(of.policy, runtime))
    .map((of) =>
      warning(
        `policy of ${runtime}`,
        `it may hand tasks on to ${of.runtime}, which accepts none of it`,
        `./sluice allow ${of.id} ${runtime}`,
      ),
    );
}

/** Who lists the agents: peers on Discord those of their own guild alone (docs/cards.md). */
export function guildFinding(guild: string | undefined): Finding {
  return ok(
    "discovery",
    guild === undefined
      ? "without discovery.discordGuildId no peer on Discord lists the agents; who knows one can ask it"
      : `peers of the guild ${guild} list the agents`,
  );
}

/** Fields that are written by older names, by where they stand. */
export function legacyFindings(
  legacy: ReadonlyMap<string, readonly Pick<LegacyField, "field" | "canonical" | "unused">[]>,
): Finding[] {
  return [...legacy].flatMap(([where, fields]) =>
    fields.map(({ field, canonical, unused }) =>
      warning(
        `${where === "defaults" ? where : `agents.${where}`}.${field}`,
        unused ? `counts for nothing beside ${canonical}` : `is an older name, and read as ${canonical}`,
        unused ? "take it out of agents.yaml" : `write ${canonical} in agents.yaml`,
      ),
    ),
  );
}
