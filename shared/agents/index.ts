/** What an agent's author writes with: `import { defineAgent, skill } from "sluice"` (see docs/agents.md). */
export type { Message, Part as MessagePart } from "../wire/index.ts";
export { type Agent, defineAgent, type Settings, type Skill, skill } from "./define.ts";
export { FatalError } from "./errors.ts";
export type { Outcome, OutcomeArtifact, Part, Step, Task } from "./types.ts";
