import { DelegationError } from "../../agents/errors.ts";
import type { Delegated, DelegatedArtifact } from "../../agents/types.ts";
import { errorMessage } from "../../events/drafts.ts";
import { mediaProblem } from "../../policy/media.ts";
import { type ChildOutcome, outcome } from "../../tasks/delegation.ts";
import type { Told } from "../../tasks/fold.ts";
import type { Child } from "../../tasks/items.ts";
import { type ArtifactRef, readableArtifactRef } from "../../wire/index.ts";
import { MAX_ARTIFACT_BYTES } from "../artifacts.ts";
import { durable } from "../durable.ts";
import type { Done, Engine } from "../engine.ts";

/** What the executor's last word comes to: nothing of it is stored once more. */
export async function outcomeOf(engine: Engine, id: string, child: Child, told: Told): Promise<Done> {
  const { values } = engine;
  const { at } = told;
  if (told.outcome === undefined) throw new TypeError(`step ${JSON.stringify(id)}: it has no outcome yet`);
  const ended = outcome().parse(JSON.parse(await durable(values.text(told.outcome))));
  const error = failureOf(id, child, ended);
  if (error !== undefined) return { at, error };
  // Some executors list no artifacts in their results, and only give them out.
  const refs = ended.artifacts.length > 0 ? ended.artifacts : await givenOut(engine, told);
  const data = dataOf(ended.text);
  const value: Delegated = {
    by: child.to,
    text: ended.text,
    ...(data !== undefined && { data }),
    artifacts: refs.map((ref) => fetchable(engine, ref, told.taskId)),
    metrics: ended.metrics,
  };
  return { at, value };
}

/** What the handler is thrown for an outcome; nothing when it is good. */
export function failureOf(
  id: string,
  { to }: Pick<Child, "to">,
  { state, text, error }: ChildOutcome,
): DelegationError | undefined {
  if (state === "TASK_STATE_COMPLETED") return undefined;
  const of = `step ${JSON.stringify(id)}: ${to}`;
  if (state === "TASK_STATE_INPUT_REQUIRED" || state === "TASK_STATE_AUTH_REQUIRED") {
    const message = `${of} asks what nobody here can answer: ${errorMessage(text)}`;
    return new DelegationError(message, { code: "unsupported_operation", state });
  }
  const code = error?.code || (state === "TASK_STATE_CANCELED" ? "canceled" : "internal");
  const words = [error?.message, text].find((said) => said !== undefined && said !== "");
  const message = `${of} has ended the task as ${state}, code ${code}${words === undefined ? "" : `: ${errorMessage(words)}`}`;
  return new DelegationError(message, { code, state });
}

async function givenOut({ values }: Engine, { artifacts }: Told): Promise<ArtifactRef[]> {
  const inOrder = [...artifacts].sort(([one], [other]) => one - other);
  return await Promise.all(
    inOrder.map(async ([, kept]) =>
      readableArtifactRef().parse(JSON.parse(await durable(values.text(kept)))),
    ),
  );
}

/** @param taskId the task's id at its executor, where it was heard: it gives out nothing but its own */
function fetchable(engine: Engine, ref: ArtifactRef, taskId: string | undefined): DelegatedArtifact {
  return {
    ...ref,
    async bytes() {
      const of = `artifact ${JSON.stringify(ref.id)}`;
      if (taskId === undefined || !ref.key.startsWith(`tasks/${taskId}/`))
        throw new Error(`${of}: expected a key under tasks/${taskId}/, got ${JSON.stringify(ref.key)}`);
      if (ref.sizeBytes > MAX_ARTIFACT_BYTES)
        throw new Error(`${of}: expected at most ${MAX_ARTIFACT_BYTES} bytes, got ${ref.sizeBytes}`);
      const { delegateMedia } = await engine.delegating.policy();
      const refused = mediaProblem(delegateMedia, ref);
      if (refused !== undefined)
        throw new DelegationError(`${of}: the policy of ${engine.head.to} does not allow it: ${refused}`, {
          code: "policy_denied",
        });
      return await engine.delegating.messenger.fetch(ref);
    },
  };
}

function dataOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
