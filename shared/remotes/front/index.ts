import type { Agent } from "../../agents/define.ts";
import { DelegationError } from "../../agents/errors.ts";
import type { DeploymentConfig, HostedAgent } from "../../config/deployment.ts";
import { hopsIn, MAX_HOPS, nextHop } from "../../policy/choosing/hops.ts";
import type { Values } from "../../tasks/values.ts";
import { frontAgent } from "./agent.ts";
import { type FrontHost, Reach } from "./reach.ts";
import { type Ended, type Release, release } from "./release.ts";
import { type FrontHead, traceOf } from "./trace.ts";

/**
 * Hosted agents that are remote ones (docs/remotes.md, "An agent that is a remote one"). Only the bundles of functions that
 * work for one have this, and load it when a task for one comes.
 */

export type { FrontHead };

/** What it takes of a work function. */
export interface FrontWork extends FrontHost {
  readonly deployment: DeploymentConfig;
  readonly values: Values;
}

const reaches = new WeakMap<FrontHost["access"], Reach>();

/** The same for the same table: a sandbox has one. */
function reachOf(host: FrontHost): Reach {
  const reach = reaches.get(host.access) ?? new Reach(host);
  reaches.set(host.access, reach);
  return reach;
}

/** The agent that does a task by having its remote do it. */
export function frontFor(host: FrontWork, head: FrontHead): Agent {
  const { hosted, remote } = hostedFor(host, head);
  return frontAgent(hosted, head.skill ?? "", ({ contextId, message }) => {
    const hops = nextHop(hopsIn(message));
    if (hops === undefined)
      throw new DelegationError(`hop_limit: the work was handed on ${MAX_HOPS} times, and goes no further`, {
        code: "policy_denied",
      });
    return reachOf(host).front(remote, traceOf(head, { hops, contextId }));
  });
}

/** Tells the remote of a task that it is over here; see {@link release}. */
export async function releaseFor(host: FrontWork, head: FrontHead, ended: Ended): Promise<Release> {
  const { remote } = hostedFor(host, head);
  const front = reachOf(host).front(remote, traceOf(head, { hops: 1 }));
  return await release({ values: host.values, front }, ended);
}

function hostedFor({ deployment }: FrontWork, { to }: FrontHead): { hosted: HostedAgent; remote: string } {
  const hosted = deployment.agents.find(({ runtime }) => runtime === to);
  if (hosted?.remote === undefined) throw new Error(`${to} is no remote agent`);
  return { hosted, remote: hosted.remote };
}
