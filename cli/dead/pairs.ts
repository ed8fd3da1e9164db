import * as z from "zod";

/** A queue and the one where its messages end that nobody could take. */
export interface Pair {
  /** Such as `tasks`, or `work-support`. */
  readonly name: string;
  readonly url: string;
  readonly deadUrl: string;
}

/** The queues of agents that have a work function of their own (infra/outputs.ts). */
const agentQueues = z.record(z.string(), z.object({ queue: z.string(), dead: z.string() }));

/**
 * The queues of a stack, by its outputs: `<Name>QueueUrl` and `<Name>DeadQueueUrl` make a pair, and `AgentQueueUrls`
 * holds those of agents that have queues of their own (infra/outputs.ts).
 *
 * @throws ZodError when `AgentQueueUrls` is none of ours
 */
export function pairsOf(outputs: Readonly<Record<string, string>>): Pair[] {
  const pairs = Object.entries(outputs).flatMap(([key, deadUrl]) => {
    const title = /^(\w+)DeadQueueUrl$/.exec(key)?.[1];
    const url = outputs[`${title}QueueUrl`];
    return title === undefined || url === undefined ? [] : [{ name: title.toLowerCase(), url, deadUrl }];
  });
  const { AgentQueueUrls = "{}" } = outputs;
  for (const [agent, { queue, dead }] of Object.entries(agentQueues.parse(JSON.parse(AgentQueueUrls))))
    pairs.push({ name: `work-${agent}`, url: queue, deadUrl: dead });
  return pairs.sort((a, b) => (a.name < b.name ? -1 : 1));
}
