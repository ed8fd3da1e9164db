// Modules that exist in bundles only: infra/bundle.ts fills them with what the operator and the authors wrote.

declare module "sluice:deployment" {
  /** The deployment, still to be parsed by `readBundled`. */
  const deployment: Readonly<Record<string, unknown>>;
  export default deployment;
}

declare module "sluice:agents" {
  import type { Agent } from "../agents/define.ts";
  import type { FrontHead, FrontWork } from "../remotes/front/index.ts";
  export const agents: readonly {
    readonly id: string;
    /** Files of agents ask for nothing. */
    readonly load: (head: FrontHead, work: FrontWork) => Promise<Agent>;
  }[];
  /** What remote agents take, where one is worked for. */
  export const front: (() => Promise<typeof import("../remotes/front/index.ts")>) | undefined;
}
