import { dynamoPeers } from "../../cards/dynamodb-peers.ts";
import { peersKnown } from "../../cards/peers.ts";
import type { DeploymentConfig } from "../../config/deployment.ts";
import type { Timing } from "../../config/timing.ts";
import type { TableAccess } from "../../tasks/dynamodb-transaction.ts";
import type { Telemetry } from "../../telemetry/index.ts";
import type { Policies } from "../runtime-policy.ts";
import { Choosing } from "./choosing.ts";
import { circuit } from "./circuit.ts";
import { cooling } from "./cooldown.ts";
import { dynamoItems } from "./dynamodb-items.ts";
import { refusals } from "./escalation.ts";
import { outcomes } from "./outcomes.ts";

/** Choosing over the table; loaded when something is handed on, for a start need not wait for it. */
export function dynamoChoosing(of: {
  readonly access: Pick<TableAccess, "client" | "table">;
  readonly deployment: DeploymentConfig;
  readonly policies: Policies;
  readonly timing: Timing;
  readonly telemetry: Telemetry;
  readonly now: () => number;
}): Choosing {
  const { access, deployment, policies, timing, telemetry, now } = of;
  const store = dynamoPeers(access);
  return new Choosing({
    deployment,
    stores: {
      outcomes: dynamoItems(access, "outcomes", outcomes),
      circuits: dynamoItems(access, "circuit", circuit),
      cooldowns: dynamoItems(access, "cooldown", cooling),
      refusals: dynamoItems(access, "refusals", refusals),
    },
    peers: recently(() => peersKnown(store, deployment.remotes ?? [], now()), now, timing.pauseKnownMs),
    policies,
    now,
    scale: timing.scale,
    telemetry,
  });
}

/** Gives what is known, and looks anew when that is so old; of those that look at once one does. */
function recently<T>(look: () => Promise<T>, now: () => number, knownMs: number): () => Promise<T> {
  let known: { readonly until: number; readonly value: Promise<T> } | undefined;
  return () => {
    if (known !== undefined && now() < known.until) return known.value;
    const looked = { until: now() + knownMs, value: look() };
    known = looked;
    looked.value.catch(() => {
      if (known === looked) known = undefined;
    });
    return looked.value;
  };
}
