import type { ShortestTimeout } from "./host-options.ts";
import type { FunctionDeclaration, MappingDeclaration, QueueDeclaration } from "./stack.ts";

/**
 * The shortest timeout that scaling may come to: what a function computes takes as long as ever, however fast the
 * clocks around it run.
 */
const MIN_TIMEOUT_MS = 3_000;

/**
 * A function's declared timeout under a time scale, in milliseconds; never longer than declared.
 *
 * @param shortest what scaling may come to at the least
 */
export function scaledTimeoutMs(
  { name, timeoutSec }: FunctionDeclaration,
  scale: number,
  shortest: ShortestTimeout = MIN_TIMEOUT_MS,
): number {
  const shortestMs = typeof shortest === "number" ? shortest : shortest(name);
  return Math.min(timeoutSec * 1_000, Math.max(shortestMs, (timeoutSec * 1_000) / scale));
}

/**
 * A queue with its visibility timeout under a time scale: whole seconds, at least 1, and never shorter than the
 * timeout of a function that works on its messages, or they would be worked on twice.
 */
export function scaledQueue(
  queue: QueueDeclaration,
  mappings: readonly MappingDeclaration[],
  functions: readonly FunctionDeclaration[],
  scale: number,
  shortest?: ShortestTimeout,
): QueueDeclaration {
  const declared = queue.attributes.VisibilityTimeout;
  if (declared === undefined || scale === 1) return queue;
  const consumers = mappings.filter((m) => m.queueName === queue.name).map((m) => m.functionName);
  const timeouts = functions
    .filter((f) => consumers.includes(f.name))
    .map((f) => scaledTimeoutMs(f, scale, shortest) / 1_000);
  const scaled = Math.ceil(Math.max(1, Number(declared) / scale, ...timeouts));
  return { ...queue, attributes: { ...queue.attributes, VisibilityTimeout: String(scaled) } };
}
