import * as z from "zod";
import { type Agent, defineAgent, skill } from "../../agents/define.ts";
import type { Task } from "../../agents/types.ts";
import type { HostedAgent } from "../../config/deployment.ts";
import type { Front } from "./front.ts";
import { runFront } from "./handler.ts";

/**
 * A hosted agent that is a remote one, as the worker of one task sees it. It has the skill that the task was admitted for:
 * which there are was decided then, and the remote's card may have changed since (hosted-skills.ts).
 *
 * @param slug of the skill
 * @param open the way to the remote for a task
 */
export function frontAgent(
  { id, description, version }: Pick<HostedAgent, "id" | "description" | "version">,
  slug: string,
  open: (task: Task) => Front,
): Agent {
  const asked = skill({
    name: slug,
    description: "Is done by a remote agent.",
    input: z.unknown(),
    run: (task, step) => runFront(task, step, open(task)),
  });
  return defineAgent({ id, description, version, skills: { [slug]: asked } });
}
