import { frontAgent } from "../../../../shared/remotes/front/agent.ts";
import type { Front } from "../../../../shared/remotes/front/front.ts";
import { release } from "../../../../shared/remotes/front/release.ts";
import type { Terms } from "../../../../shared/remotes/front/terms.ts";
import type { LogFields } from "../../../../shared/telemetry/fields.ts";
import { Crashes } from "../../../../testing/crashes.ts";
import type { Fate, Write } from "../../../../testing/process.ts";
import { Simulation } from "../../../../testing/simulation.ts";
import { TestTask } from "../../../../testing/task.ts";
import type { FakeRemote } from "./fake.ts";

const SENDER = "local-cli";

/** A task of an agent that is a remote one, over parts in memory. */
export async function playWith(
  remote: FakeRemote,
  of: {
    readonly fate?: (write: Write) => Fate;
    readonly timeoutSec?: number;
    readonly contextId?: string;
    /** What holds for it; nothing, unless it is given. */
    readonly terms?: Terms;
  } = {},
): Promise<{
  readonly task: TestTask;
  readonly simulation: Simulation;
  /** What its front has written into the log. */
  readonly warnings: readonly LogFields[];
}> {
  const warnings: LogFields[] = [];
  const { fate, terms = { mode: "autonomous", reviewer: "requester" }, ...request } = of;
  const front: Front = {
    remote: "fake",
    warn: (message, fields) => void warnings.push({ ...fields, message }),
    ask: (what) => what(remote),
    terms: async () => terms,
    now: () => simulation.clock.now(),
    scale: 1,
  };
  const hosted = { id: "audit", description: "", version: "1.0.0" };
  const agent = frontAgent(hosted, "task", () => front);
  const simulation: Simulation = new Simulation(agent, {
    ...(fate !== undefined && { fate }),
    tellRemote: async (_, view, endedAt) =>
      (await release({ values: simulation.values, front }, { view, endedAt })) !== "later",
  });
  const crashes = new Crashes();
  const { taskId } = await simulation.admit({ skill: "task", a2a: "do it", from: SENDER, ...request });
  return { task: new TestTask({ id: taskId, from: SENDER, simulation, crashes }), simulation, warnings };
}
