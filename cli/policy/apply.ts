import { isSensitive } from "../../shared/policy/changes.ts";
import { TokenError, verifyToken } from "../../shared/policy/confirmation.ts";
import type { StoredPlan } from "../../shared/policy/dynamodb-policies.ts";
import { runtimePolicy } from "../../shared/policy/runtime-policy.ts";
import { CliError, EXIT } from "../errors.ts";
import { processOutput } from "../output.ts";
import type { PolicyOptions } from "../policy.ts";
import { repeatPlace } from "../repeat.ts";
import { currentHome } from "../session.ts";
import {
  type Change,
  changeOf,
  comesTo,
  digestOfPlan,
  make,
  meanwhile,
  operator,
  tellChange,
} from "./change.ts";
import { confirmationKey } from "./key.ts";
import { type OpenPolicy, openPolicy } from "./open.ts";
import { toldRequest } from "./plan.ts";

/** `policy apply`: makes a change that was planned, or one that is harmless at once. */
export async function apply(name: string, given: PolicyOptions): Promise<number> {
  const out = processOutput(given.json);
  using open = await openPolicy(currentHome(given), name, given.stack);
  const { agent } = open;
  const { change: id } = given;
  const change =
    id === undefined
      ? await changeOf(open, (now) => toldRequest(out, given, now))
      : await planned(open, id, given.token);
  if (id === undefined && isSensitive(change.risks))
    throw new CliError(
      EXIT.usage,
      `the change is sensitive (${change.risks.join(", ")}): plan it on a terminal with ./sluice policy plan ${agent.id}, and apply that with the token that is shown`,
    );
  if (!change.isMade) await made(open, change, id);
  const { changes, risks } = change;
  const version = change.isMade ? change.base : change.base + 1;
  out.record({ agent: agent.id, runtime: agent.runtime, version, changes, risks });
  out.line(
    change.isMade
      ? `${agent.runtime}: nothing to change`
      : `${agent.runtime}: version ${version} is in force`,
  );
  tellChange(out, change);
  if (!change.isMade) out.line(`look at it with ${repeatPlace("./sluice policy show")} ${agent.id}`);
  return EXIT.ok;
}

async function made(open: OpenPolicy, change: Change, id: string | undefined): Promise<void> {
  const outcome = await make(open, change, {
    command: "policy apply",
    ...(id !== undefined && { plan: id }),
  });
  if (outcome === "used") throw refused(used(id ?? ""));
  if (outcome === "conflict") throw meanwhile(open.agent.runtime);
}

function used(id: string): TokenError {
  return new TokenError("token_used", `the change ${id} was applied already`);
}

function refused(error: TokenError): CliError {
  return new CliError(EXIT.failed, `${error.code}: ${error.message}`, { cause: error });
}

/** A change that was planned, and confirmed where it must be. */
async function planned(open: OpenPolicy, id: string, token: string | undefined): Promise<Change> {
  const { agent, store } = open;
  const { runtime } = agent;
  const [plan, known] = await Promise.all([store.planOf(runtime, id), store.policyOf(runtime)]);
  if (plan === undefined)
    throw new CliError(EXIT.usage, `--change ${id}: ${runtime} has no such change; plans are kept for a day`);
  const read = runtimePolicy().parse({ version: plan.base + 1, fields: plan.fields });
  const change = comesTo(agent, known, read.fields);
  // Of a plan that is used the policy has moved on, too; that it was is the better answer.
  try {
    if (token !== undefined || (isSensitive(change.risks) && plan.usedAt === undefined))
      await confirm(open, plan, token);
    if (plan.usedAt !== undefined) throw used(id);
  } catch (error) {
    throw error instanceof TokenError ? refused(error) : error;
  }
  if (plan.base !== change.base) throw meanwhile(runtime);
  return change;
}

/** @throws TokenError */
async function confirm(
  { place, agent }: OpenPolicy,
  plan: StoredPlan,
  token: string | undefined,
): Promise<void> {
  if (token === undefined)
    throw new TokenError(
      "token_missing",
      "the change is sensitive: expected --token with what `policy plan` has shown",
    );
  const { runtime } = agent;
  const confirmed = {
    agent: runtime,
    operator: operator(),
    change: plan.id,
    digest: digestOfPlan(runtime, plan),
  };
  verifyToken(await confirmationKey(place), token, confirmed, Date.now());
}
