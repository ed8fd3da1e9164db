/** What an agent's author writes with: `import { defineAgent, skill } from "sluice"` (see docs/agents.md). */
export type { Message, Part as MessagePart } from "../wire/index.ts";
export { type Agent, defineAgent, type Settings, type Skill, skill } from "./define.ts";
export { ApprovalDenied, DelegationError, FatalError, ReplyTimeout } from "./errors.ts";
export type {
  ApproveOptions,
  ArtifactOptions,
  AskOptions,
  Attempt,
  Delegated,
  DelegatedArtifact,
  DelegateOptions,
  DelegatePart,
  Duration,
  EachOptions,
  Outcome,
  OutcomeArtifact,
  Part,
  Retry,
  RunOptions,
  Step,
  Task,
} from "./types.ts";
