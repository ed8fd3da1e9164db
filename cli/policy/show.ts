import { POLICY_FIELDS } from "../../shared/policy/changes.ts";
import { effectivePolicy } from "../../shared/policy/runtime-policy.ts";
import { EXIT } from "../errors.ts";
import { type Output, processOutput } from "../output.ts";
import type { PolicyOptions } from "../policy.ts";
import { currentHome } from "../session.ts";
import { table } from "../table.ts";
import { cleanLine } from "../text.ts";
import { valueText } from "./change.ts";
import { type OpenPolicy, openPolicy } from "./open.ts";

/** Changes that are shown at once. */
const MAX_HISTORY = 100;

/** `policy show`: the policy in force, and where each field comes from; or who has changed it. */
export async function show(name: string, given: PolicyOptions): Promise<number> {
  const out = processOutput(given.json);
  using open = await openPolicy(currentHome(given), name, given.stack);
  await (given.history ? tellHistory(open, out) : tellPolicy(open, out));
  return EXIT.ok;
}

async function tellPolicy({ agent, store, writtenAt, legacy }: OpenPolicy, out: Output): Promise<void> {
  const known = await store.policyOf(agent.runtime);
  const policy = effectivePolicy(agent.policy, known);
  const inTable = (field: string) => Object.hasOwn(known?.fields ?? {}, field);
  const rows = POLICY_FIELDS.map((field) => {
    const file = writtenAt(field) ?? "default";
    return { field, value: policy[field], from: inTable(field) ? "table" : file };
  });
  const { id, runtime } = agent;
  out.record({
    agent: id,
    runtime,
    version: known?.version ?? 0,
    policy,
    from: Object.fromEntries(rows.map(({ field, from }) => [field, from])),
    legacy,
  });
  out.line(`${runtime}${known === undefined ? "" : `, version ${known.version}`}`);
  const shown = rows.map(({ field, value, from }) => [field, valueText(value), from]);
  for (const line of table(["FIELD", "VALUE", "FROM"], shown)) out.line(line);
  for (const { where, field, canonical, unused } of legacy)
    out.line(
      `legacy: ${where}.${field} ${unused ? `counts for nothing beside ${canonical}` : `is read as ${canonical}`}; write ${canonical}`,
    );
}

async function tellHistory({ agent, store }: OpenPolicy, out: Output): Promise<void> {
  const entries = await store.history(agent.runtime, MAX_HISTORY);
  for (const { at, fields, ...entry } of entries) {
    const when = new Date(at).toISOString();
    out.record({ agent: agent.id, runtime: agent.runtime, at: when, inTable: fields, ...entry });
    out.line(`version ${entry.version}  ${when}  ${cleanLine(entry.by, 64)}  ${cleanLine(entry.command)}`);
    for (const { field, before, after } of entry.changes)
      out.line(`  ${cleanLine(field, 64)}: ${valueText(before)} → ${valueText(after)}`);
  }
  if (entries.length === 0) out.line(`${agent.runtime}: its policy was not changed since it was deployed`);
}
