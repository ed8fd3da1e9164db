/** A reporter of `node:test` that says at the end which files have taken longest. */
import { relative, resolve } from "node:path";
import type { TestEvent } from "node:test/reporters";

const SHOWN = 10;

export default async function* slowest(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const times = new Map<string, number>();
  for await (const { type, data } of source) {
    // Beside its tests a file is told as one itself, by its name: with its start, and what is done before and after all.
    if (type !== "test:complete" || data.nesting > 0 || resolve(data.name) !== data.file) continue;
    times.set(data.file, data.details.duration_ms);
  }
  if (times.size <= SHOWN) return;
  const longest = [...times].sort(([, a], [, b]) => b - a).slice(0, SHOWN);
  yield `\nthe files that took longest, of ${times.size}:\n`;
  for (const [file, ms] of longest)
    yield `${(ms / 1_000).toFixed(1).padStart(7)} s  ${relative(process.cwd(), file)}\n`;
}
