import * as z from "zod";
import { mimePatternCheck, runtimeOrAnyoneCheck, slugCheck } from "./forms.ts";

/**
 * What an operator may set for an agent: in `agents.yaml`, and while it runs in the table (docs/policy.md). The bundles
 * carry it as bundled.ts reads it.
 */

const slug = z.string().check(slugCheck());
const runtimeOrAnyone = z.string().check(runtimeOrAnyoneCheck());
const mimePattern = z.string().check(mimePatternCheck());

/** A leap year: the longest that a task may live. */
export const MAX_TIMEOUT_SEC = 366 * 86_400;
/** More hops than this are a loop, whatever the operator says. */
export const MAX_DELEGATION_DEPTH = 12;
/** What every peer takes for a limit; the item that counts slots stays small with it (docs/table.md, slots). */
export const MAX_CONCURRENT = 64;
export const MAX_QUEUED = 1_000_000;
export const MAX_STATUS_EVERY_SEC = 3_600;
/** So many open tasks can be looked at in ten requests (docs/table.md, quotas). */
export const MAX_QUOTA = 1_000;
export const MAX_EVENTS_PER_MIN = 600;
/** As large as an artifact may be at all (docs/limits.md). */
export const MAX_MEDIA_BYTES = 64 * 1_048_576;
/** How long each list of a policy may be. */
export const MAX_LIST = 200;

const seconds = z.int().min(1).max(MAX_TIMEOUT_SEC);
const timeoutSec = z
  .strictObject({
    default: seconds
      .optional()
      .describe("When the task does not say. Without it 300, or `max` if that is less."),
    max: seconds.default(86_400).describe("The most that a task may ask for."),
  })
  .transform((of) => ({ default: of.default ?? Math.min(300, of.max), max: of.max }))
  .refine((of) => of.default <= of.max, { error: "expected no more than max", path: ["default"] });

/** An agent of a peer that ours may delegate to. */
const delegateTarget = z.strictObject(
  {
    runtimeAgentId: runtimeOrAnyone.describe("The agent's runtime, or all."),
    skillId: z
      .string()
      .regex(
        /^([A-Za-z0-9][A-Za-z0-9_-]{0,63}\/)?([A-Za-z0-9][A-Za-z0-9_-]{0,63}\*?|\*)$/,
        "expected a slug or ref/slug, optionally ending in *",
      )
      .default("task")
      .describe("The skill, of any address of the agent or of one; `task` is the same as `general_task`."),
  },
  {
    // Other lists of who may do something are of plain ids.
    error: ({ code }) =>
      code === "invalid_type"
        ? "expected a map such as { runtimeAgentId: bob-lobby, skillId: task }"
        : undefined,
  },
);

const exposedSkill = z.strictObject({
  id: slug.describe("A skill of the agent."),
  inputModes: z
    .array(mimePattern)
    .max(MAX_LIST)
    .optional()
    .describe("The media types that it takes, as the card shows them."),
  outputModes: z
    .array(mimePattern)
    .max(MAX_LIST)
    .optional()
    .describe("The media types that it gives, as the card shows them."),
});

const quota = z.int().min(0).max(MAX_QUOTA).default(0);
const quotas = z.strictObject({
  open: quota.describe(
    "About so many tasks of the agent may be open at once; more are rejected as `overloaded`. 0 means no limit.",
  ),
  openPerPeer: quota.describe("The same of one peer's tasks."),
});

const delegateMedia = z.strictObject({
  allowedMimeTypes: z
    .array(mimePattern)
    .max(MAX_LIST)
    .default([])
    .describe("Their media types: exact ones, or such as `image/*`. Empty means all."),
  maxBytes: z
    .int()
    .min(0)
    .max(MAX_MEDIA_BYTES)
    .default(MAX_MEDIA_BYTES)
    .describe("How large one may be, in bytes."),
  allowObjectRefs: z
    .boolean()
    .default(true)
    .describe("Whether they may be fetched from the object store at all, which is how peers give them out."),
});

/** The fields of a policy with the values that they have when the operator says nothing. */
export const policyFields = {
  enabled: z
    .boolean()
    .default(true)
    .describe("Whether new tasks are taken; otherwise they are rejected as `channel_not_enabled`."),
  acceptFromRuntimes: z
    .array(runtimeOrAnyone)
    .max(MAX_LIST)
    .default([])
    .describe('Whose tasks are accepted: exact runtime ids, or `"*"` for everybody. Empty means nobody.'),
  acceptSkills: z
    .array(slug)
    .max(MAX_LIST)
    .default([])
    .describe("Which skills may be asked for. Empty means all that the agent has."),
  resultVisibility: z
    .enum(["any", "proxy", "transparent"])
    .default("any")
    .describe(
      "The one that a task may ask for as `delivery.resultVisibility`; another is rejected as `policy_denied`. What is delivered is the same.",
    ),
  timeoutSec: timeoutSec.prefault({}).describe("Seconds from acceptance to the deadline."),
  maxDelegationDepth: z
    .int()
    .min(0)
    .max(MAX_DELEGATION_DEPTH)
    .default(1)
    .describe("Ceiling for the depth of tasks received; what is handed on is one less."),
  maxConcurrent: z
    .int()
    .min(0)
    .max(MAX_CONCURRENT)
    .default(10)
    .describe(
      "Tasks of the agent worked on at once; 0 means unlimited. Further tasks wait: [tasks.md](tasks.md), slots. One that asks, sleeps or delegates for more than some seconds gives its slot up meanwhile. All agents together have at most as many as the function `work` has invocations ([below](#what-a-function-is-told)), but for those with a `function`.",
    ),
  maxQueued: z
    .int()
    .min(1)
    .max(MAX_QUEUED)
    .default(1_000)
    .describe("About this many tasks wait; more are rejected as `overloaded`. Without a limit none waits."),
  quotas: quotas
    .prefault({})
    .describe(
      "How many tasks may be open, whether they run, wait, ask or sleep: [policy.md](policy.md#quotas).",
    ),
  statusEverySec: z
    .number()
    .min(0)
    .max(MAX_STATUS_EVERY_SEC)
    .default(5)
    .describe("Progress texts are merged to one in this many seconds; 0 sends each."),
  eventsPerMin: z
    .int()
    .min(0)
    .max(MAX_EVENTS_PER_MIN)
    .default(0)
    .describe(
      "Progress events of one task in a minute, at the most, as far apart as that; further texts are merged, and the last before a wait or the end is told anyway. 0 means no limit but `statusEverySec`.",
    ),
  discoverable: z
    .boolean()
    .default(true)
    .describe("Whether the agent has a card, and names its skills to whoever asks for one that it has not."),
  exposeSkills: z
    .array(exposedSkill)
    .max(MAX_LIST)
    .default([])
    .describe("The skills that it shows. Empty means all that may be asked for."),
  delegateTargets: z
    .array(delegateTarget)
    .max(MAX_LIST)
    .default([])
    .describe(
      "To whom the agent may hand tasks on. The other agent must accept tasks from this one. Without a target in the file, events for this agent are not read: let its delegations end before you take the last one out.",
    ),
  delegateMedia: delegateMedia
    .prefault({})
    .describe("Which artifacts of tasks that it has handed on the agent may fetch."),
  allowMemoryWrite: z
    .boolean()
    .default(false)
    .describe("Whether remote tasks may use tools that write memory: handlers see it as `task.memoryWrite`."),
};

export const agentPolicy = z.strictObject(policyFields);
/** What the operator allows an agent; each field is explained in docs/configuration.md. */
export type AgentPolicy = z.infer<typeof agentPolicy>;
