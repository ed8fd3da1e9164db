import assert from "node:assert/strict";
import * as z from "zod";
import {
  type Agent,
  type Delegated,
  type DelegateOptions,
  DelegationError,
  defineAgent,
  type Step,
  skill,
} from "../../../shared/agents/index.ts";
import { type StartOptions, startTask } from "../../../testing/index.ts";

const MINUTE_SEC = 60;
export const HOUR_SEC = 60 * MINUTE_SEC;
/** Whom the tests hand tasks on to. */
export const BOB = "acme-bob";

/** An agent that does what a test says. */
export function agentOf(run: (step: Step) => unknown): Agent {
  return defineAgent({
    id: "ann",
    description: "Delegates",
    skills: {
      task: skill({
        name: "Task",
        description: "",
        input: z.string(),
        run: async (_task, step) => String(await run(step)),
      }),
    },
  });
}

export const start = (run: (step: Step) => unknown, options: StartOptions = {}) =>
  startTask(agentOf(run), options);
export const ask = (step: Step, over: Partial<DelegateOptions> = {}) =>
  step.delegate("bob", { to: BOB, skill: "bob/task", message: "help", ...over });
/** What a failed delegation tells, in one line. */
export const failure = async (delegated: Promise<Delegated>): Promise<string> => {
  const error = await delegated.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(error instanceof DelegationError);
  return `${error.code} ${error.state ?? "-"}: ${error.message}`;
};
