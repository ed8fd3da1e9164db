import { JetStreamApiError } from "@nats-io/jetstream";
import { cleanLine } from "../text.ts";

/** Which settings differ; nothing when none does. */
export function driftOf(
  actual: Readonly<Record<string, unknown>>,
  wanted: Readonly<Record<string, unknown>>,
): string | undefined {
  const differ = Object.entries(wanted).filter(
    ([key, value]) => value !== undefined && JSON.stringify(actual[key] ?? null) !== JSON.stringify(value),
  );
  if (differ.length === 0) return undefined;
  return differ
    .map(
      ([key, value]) =>
        `${key} is ${cleanLine(JSON.stringify(actual[key] ?? null))} instead of ${JSON.stringify(value)}`,
    )
    .join(", ");
}

/** What a request gives; nothing when it fails with one of these codes. */
export async function unlessMissing<T>(
  request: Promise<T>,
  ...codes: readonly number[]
): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof JetStreamApiError && codes.includes(error.code)) return undefined;
    throw error;
  }
}
