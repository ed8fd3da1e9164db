import type { PeersKnown } from "../cards/peers.ts";
import type { DeploymentConfig } from "../config/deployment.ts";
import { Choosing } from "../policy/choosing/choosing.ts";
import type { Telemetry } from "../telemetry/index.ts";
import { filePolicies } from "./file-policies.ts";
import { memoryItems } from "./memory-items.ts";

const NOBODY: PeersKnown = { peers: [], amiss: [], lookedAt: 0 };

/** Choosing with what is kept in memory, among the agents of the deployment unless others are known. */
export function memoryChoosing(of: {
  readonly deployment: Pick<DeploymentConfig, "agents" | "choosing">;
  readonly now: () => number;
  readonly telemetry: Telemetry;
  readonly peers?: () => PeersKnown;
}): Choosing {
  const { deployment, now, telemetry, peers = () => NOBODY } = of;
  return new Choosing({
    deployment,
    stores: {
      outcomes: memoryItems(),
      circuits: memoryItems(),
      cooldowns: memoryItems(),
      refusals: memoryItems(),
    },
    peers: async () => peers(),
    policies: filePolicies(deployment),
    now,
    scale: 1,
    telemetry,
  });
}
