import type { Refusal } from "../../policy/choosing/choose.ts";
import type { Addressee } from "../../policy/choosing/choosing.ts";
import { randomOf } from "../chance.ts";
import { durable } from "../durable.ts";
import type { Engine } from "../engine.ts";
import type { StoredError } from "../failures.ts";
import type { Asked } from "./delegate-options.ts";

/** What the error of a step is called that could not, or not in time, hand its task on. */
export const DELEGATION_ERROR = "DelegationError";

/** Who gets what a step hands on, or why nobody does: then nothing is sent, least of all to another. */
export async function choiceFor(
  engine: Engine,
  id: string,
  asked: Asked,
): Promise<Addressee | { readonly error: StoredError }> {
  const { head, delegating } = engine;
  const of = `step ${JSON.stringify(id)}`;
  if ((head.depth ?? 0) < 1) {
    const message = `${of}: this task may not be handed on (maxDelegationDepth)`;
    return { error: { name: DELEGATION_ERROR, code: "policy_denied", message } };
  }
  const { taskId, to: runtime } = head;
  const { to, channelRef, skill, subject } = asked;
  const { delegateTargets: targets } = await durable(delegating.policy());
  const choosing = await durable(delegating.choosing());
  const { hops } = delegating;
  const random = () => randomOf(taskId, id, 0);
  const handing = { runtime, taskId, step: id, to, channelRef, skill, subject, hops, targets, random };
  const choice = await durable(choosing.choose(handing));
  if ("refused" in choice) return { error: errorOf(of, runtime, asked, choice.refused) };
  if (choice.why !== "target") engine.chose(id, choice);
  return choice;
}

function errorOf(of: string, runtime: string, asked: Asked, { reason, message }: Refusal): StoredError {
  const error = (code: string, words: string) => ({
    name: DELEGATION_ERROR,
    code,
    message: `${of}: ${words}`,
  });
  const { to, channelRef, skill } = asked;
  const addressed = channelRef === undefined ? skill : `${channelRef}/${skill}`;
  if (reason === "not_allowed")
    return error(
      "unauthorized_target",
      `the policy of ${runtime} has no delegateTargets for ${addressed} of ${to}`,
    );
  const hint =
    "; an agent that shows no card here, or has for less than a minute, needs skill as channelRef/";
  return error(reason, reason === "target_unresolved" ? `${message}${hint}${skill}` : message);
}
