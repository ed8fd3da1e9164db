/**
 * Why nobody was chosen, and why one agent was not: all the reasons that there are, and what an operator does about each.
 * docs/choosing.md has the same list.
 */
interface Told {
  /** What it is said of: a request, which is refused for it, an agent, which is passed over for it, or either. */
  readonly of: "request" | "agent" | "either";
  readonly meaning: string;
  readonly remedy: string;
}

export const REASONS = {
  no_skill: {
    of: "request",
    meaning: "neither an agent nor a skill is named, or `all` without a skill",
    remedy: "mend the caller: whom or what it wants is missing",
  },
  several: {
    of: "request",
    meaning: "several agents are named, or `all`, where one result is wanted",
    remedy: "mend the caller: each agent is asked by a step of its own (`step.each`)",
  },
  target_unresolved: {
    of: "request",
    meaning: "nobody has the name that the request names",
    remedy:
      "correct the name to one of the nearest, or declare that agent; wait a minute where it is new; another is never asked in its place",
  },
  target_ambiguous: {
    of: "request",
    meaning: "several agents go by the name that the request names",
    remedy: "name one of them by its own name, or take the other name from all but one",
  },
  unknown_skill: {
    of: "request",
    meaning: "the agent that is named is known not to have the skill",
    remedy: "name one of its skills; declare the skill where its card leaves it out",
  },
  no_candidate: {
    of: "request",
    meaning: "no agent that has the skill can be asked, nor can the default",
    remedy: "look at why each was passed over; name a default if somebody is to take what nobody else does",
  },
  not_allowed: {
    of: "either",
    meaning: "the policy of the agent that asks does not name it for this skill",
    remedy: "add it to the `delegateTargets` of whoever asks, if it should be asked",
  },
  not_accepted: {
    of: "agent",
    meaning: "its own policy takes no such task: it is turned off, or accepts neither who asks nor the skill",
    remedy:
      "add whoever asks to its `acceptFromRuntimes`, and the skill to its `acceptSkills`, if it should be asked",
  },
  circuit_open: {
    of: "either",
    meaning: "it has failed five times in a row, and is left alone for a minute, then tried by one request",
    remedy: "mend the agent or the way to it: the first success lets everybody through again",
  },
  unhealthy: {
    of: "agent",
    meaning: "its last health check has failed",
    remedy: "mend the agent or the way to it; who names it still reaches it",
  },
  stale: {
    of: "agent",
    meaning: "nothing has been heard of it for so long that it may be gone",
    remedy: "see whether it still runs and publishes its card; who names it still reaches it",
  },
  outranked: {
    of: "agent",
    meaning: "another agent has the skill with a higher priority",
    remedy: "nothing; declare the skill for this one too if both should be asked",
  },
  not_drawn: {
    of: "agent",
    meaning: "the draw among agents of the same priority fell on another",
    remedy: "nothing; one that is never drawn has no success within memory",
  },
  cooldown: {
    of: "request",
    meaning: "the same skill was asked for the same subject a moment ago",
    remedy: "wait; shorten the skill's cooldown if it is too long",
  },
  hop_limit: {
    of: "request",
    meaning: "the work has been handed on twelve times already",
    remedy: "find the agents that hand it to each other in a circle",
  },
} as const satisfies Record<string, Told>;

export type Reason = keyof typeof REASONS;

type OfA<Kind extends Told["of"]> = {
  [R in Reason]: (typeof REASONS)[R]["of"] extends Kind | "either" ? R : never;
}[Reason];

/** Why a request is refused. */
export type RefusalReason = OfA<"request">;
/** Why an agent that has the skill is not the one that is asked. */
export type PassingReason = OfA<"agent">;
