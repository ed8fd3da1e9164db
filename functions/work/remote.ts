import type { TellRemote } from "../../shared/events/farewell.ts";
import type { FrontWork } from "../../shared/remotes/front/index.ts";

type Front = () => Promise<typeof import("../../shared/remotes/front/index.ts")>;

/** How a work function tells a remote agent that a task is over; what that takes is loaded when it is needed. */
export function tellRemoteBy(work: FrontWork, front: Front): TellRemote {
  return async (head, view, endedAt) => {
    const { releaseFor } = await front();
    const release = await releaseFor(work, head, { view, endedAt });
    const { taskId, to, traceparent } = head;
    const remote = work.deployment.agents.find(({ runtime }) => runtime === to)?.remote;
    const fields = { taskId, to, remote, traceparent, why: release };
    if (release === "told" || release === "nothing")
      work.telemetry.info("the remote agent knows that the task is over", fields);
    else work.telemetry.warn("the remote agent does not know that the task is over", fields);
    return release !== "later";
  };
}
