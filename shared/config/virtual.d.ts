// Modules that exist in bundles only: infra/bundle.ts fills them with what the operator and the authors wrote.

declare module "sluice:deployment" {
  /** The deployment, still to be parsed by `readBundled`. */
  const deployment: unknown;
  export default deployment;
}

declare module "sluice:agents" {
  import type { AgentSource } from "../agents/define.ts";
  export const agents: readonly AgentSource[];
}
