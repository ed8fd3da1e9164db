import type { LogLine } from "./line.ts";
import { inOrder, type Logs, type Tail } from "./source.ts";

/** How many invocations are looked for at once, and how many lots of them are followed: a task has few at a time. */
const MAX_INVOCATIONS = 200;
const MAX_LOTS = 5;

/**
 * Lines in which one of the texts stands, and what Lambda says of the invocations that wrote them: that one timed out,
 * or that its process ended.
 *
 * @param texts such as a task's id
 * @param since milliseconds since 1970
 * @param isMeant which of the lines with such a text are, by default all
 */
export function linesAbout(
  logs: Logs,
  texts: readonly string[],
  since: number,
  isMeant: (line: LogLine) => boolean = () => true,
): Tail {
  const own = logs.tail({ of: texts, since });
  const known = new Set<string>();
  const lots: Tail[] = [];
  return {
    async next() {
      const lines = (await own.next()).filter(isMeant);
      const ids = new Set(lines.flatMap(({ requestId }) => requestId ?? []));
      const fresh = [...ids].filter((id) => !known.has(id)).slice(-MAX_INVOCATIONS);
      for (const id of fresh) known.add(id);
      if (fresh.length > 0) lots.push(logs.tail({ of: fresh, since }));
      lots.splice(0, lots.length - MAX_LOTS);
      const told = (await Promise.all(lots.map((lot) => lot.next()))).flat();
      return inOrder([...lines, ...told.filter(isOfLambda)]);
    },
  };
}

function isOfLambda({ level }: LogLine): boolean {
  return level === "";
}
