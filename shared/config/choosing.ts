import * as z from "zod";
import { MAX_COOLDOWN_SEC } from "../policy/choosing/cooldown.ts";
import type { Finding } from "./config-error.ts";
import { slugCheck } from "./forms.ts";
import type { Hostable } from "./front-agents.ts";

/** The section `choosing` of the operator's file: who gets what agents hand on (docs/choosing.md). */

/** How many skills may rest. */
const MAX_COOLDOWNS = 200;

const slug = z.string().check(slugCheck());

export const choosingConfig = z.strictObject({
  default: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Who takes what no other agent does: one of `agents`, by its id. It must have the skill `task`, for which it is asked then.",
    ),
  cooldownSec: z
    .record(slug, z.int().min(0).max(MAX_COOLDOWN_SEC))
    .refine((of) => Object.keys(of).length <= MAX_COOLDOWNS, `expected at most ${MAX_COOLDOWNS} skills`)
    .default({})
    .describe(
      "By skill: for how many seconds it is not asked for the same subject again, after somebody was chosen for it.",
    ),
});

/** What is said of choosing, as the functions know it. */
export type ChoosingConfig = z.infer<typeof choosingConfig>;

/** What is wrong with the default: it must be there, and take what nobody else does. */
export function unfitDefault(
  { default: id }: Partial<ChoosingConfig>,
  agents: readonly Pick<Hostable, "id" | "skills">[],
): Finding[] {
  if (id === undefined) return [];
  const agent = agents.find((of) => of.id === id);
  const path = ["choosing", "default"];
  if (agent === undefined) {
    const known = agents.map((of) => of.id).join(", ");
    return [{ path, message: `expected the id of one of the agents: ${known || "there is none"}` }];
  }
  const general = Object.keys(agent.skills).some((of) => of === "task" || of === "general_task");
  return general ? [] : [{ path, message: `expected an agent with the skill task, which ${id} has not` }];
}
