/** What an agent's author writes with: `import { defineAgent, skill } from "sluice"` (see docs/agents.md). */
export type { Message, Part as MessagePart } from "../wire/index.ts";
export { type Agent, defineAgent, type Settings, type Skill, skill } from "./define.ts";
export { ApprovalDenied, FatalError, ReplyTimeout } from "./errors.ts";
export type {
  ApproveOptions,
  ArtifactOptions,
  AskOptions,
  Attempt,
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
