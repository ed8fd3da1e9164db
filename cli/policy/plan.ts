import { isSensitive } from "../../shared/policy/changes.ts";
import { signToken } from "../../shared/policy/confirmation.ts";
import { EXIT } from "../errors.ts";
import { type Output, processOutput } from "../output.ts";
import type { PolicyOptions } from "../policy.ts";
import { repeatPlace } from "../repeat.ts";
import { currentHome } from "../session.ts";
import { changeOf, digestOfPlan, operator, planOf, tellChange } from "./change.ts";
import { confirmationKey } from "./key.ts";
import { type OpenPolicy, openPolicy } from "./open.ts";
import { readRequest } from "./request.ts";

/** `policy plan`: shows what a change comes to, and keeps it for `policy apply`. */
export async function plan(name: string, given: PolicyOptions): Promise<number> {
  const out = processOutput(given.json);
  using open = await openPolicy(currentHome(given), name, given.stack);
  const { agent, store } = open;
  const change = await changeOf(open, (now) => toldRequest(out, given, now));
  if (change.isMade) {
    out.record({ agent: agent.id, runtime: agent.runtime, changes: [] });
    out.line(`${agent.runtime}: nothing to change`);
    return EXIT.ok;
  }
  const kept = planOf(change);
  await store.plan(agent.runtime, kept);
  const sensitive = isSensitive(change.risks);
  const { changes, risks } = change;
  out.record({ agent: agent.id, runtime: agent.runtime, change: kept.id, changes, risks, sensitive });
  out.line(`${agent.runtime}: change ${kept.id}`);
  tellChange(out, change);
  const apply = repeatPlace(`./sluice policy apply`);
  const line = `${apply} ${agent.id} --change ${kept.id}`;
  if (!sensitive) out.line(`apply it with ${line}`);
  else if (out.interactive)
    out.line(`confirm it within ten minutes: ${line} --token ${await token(open, kept)}`);
  else
    out.note(
      "the change is sensitive: it needs a confirmation token, which is shown to a person on a terminal only; plan it there",
    );
  return EXIT.ok;
}

/** The change that is written, with a remark on names that are read as others. */
export function toldRequest(out: Output, given: PolicyOptions, now: Parameters<typeof readRequest>[1]) {
  const request = readRequest(given, now);
  for (const { field, canonical, unused } of request.legacy)
    out.note(
      `${field} is a legacy name ${unused ? `and counts for nothing beside ${canonical}` : `of ${canonical}`}`,
    );
  return request;
}

async function token({ place, agent }: OpenPolicy, kept: ReturnType<typeof planOf>): Promise<string> {
  const confirmed = {
    agent: agent.runtime,
    operator: operator(),
    change: kept.id,
    digest: digestOfPlan(agent.runtime, kept),
  };
  return signToken(await confirmationKey(place), confirmed, kept.at);
}
