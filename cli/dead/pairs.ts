/** A queue and the one where its messages end that nobody could take. */
export interface Pair {
  /** Such as `tasks`, or `work-support`. */
  readonly name: string;
  readonly url: string;
  readonly deadUrl: string;
}

/**
 * The queues of a stack, by its outputs: `<Name>QueueUrl` and `<Name>DeadQueueUrl` make a pair, however many there are
 * (infra/stack.ts).
 */
export function pairsOf(outputs: Readonly<Record<string, string>>): Pair[] {
  const pairs = Object.entries(outputs).flatMap(([key, deadUrl]) => {
    const title = /^(\w+)DeadQueueUrl$/.exec(key)?.[1];
    const url = outputs[`${title}QueueUrl`];
    return title === undefined || url === undefined ? [] : [{ name: nameOf(title), url, deadUrl }];
  });
  return pairs.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** `WorkSupport` → `work-support`. */
function nameOf(title: string): string {
  return title.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, "-").toLowerCase();
}
