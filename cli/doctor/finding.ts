import { ConfigError } from "../../shared/config/config-error.ts";
import { NatsError } from "../../shared/nats/errors.ts";
import { type Refusal, refusalOf } from "../../shared/nats/refusal.ts";
import type { Resource } from "../deployed.ts";
import { CliError } from "../errors.ts";
import { permissionAdvice } from "../nats.ts";
import { reasonOf } from "../place.ts";
import { cleanLine } from "../text.ts";

export type Level = "ok" | "warning" | "wrong";

/** What a look at one part has shown. */
export interface Finding {
  readonly level: Level;
  /** Such as `stream A2A_TASKS`. */
  readonly part: string;
  readonly says: string;
  /** What to do about it; of all that is not `ok`. */
  readonly todo?: string;
}

export function ok(part: string, says: string): Finding {
  return { level: "ok", part, says };
}

/** It works, but not as it should, or not for long. */
export function warning(part: string, says: string, todo: string): Finding {
  return { level: "warning", part, says, todo };
}

/** Tasks are not taken, not worked on, or lost. */
export function wrong(part: string, says: string, todo: string): Finding {
  return { level: "wrong", part, says, todo };
}

/**
 * Looks at a part. That it cannot be looked at is a finding too.
 *
 * @param todo what to do when it cannot
 */
export async function examine(
  part: string,
  todo: string,
  look: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  try {
    return await look();
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal !== undefined) return [refused(part, refusal)];
    const speaks = [CliError, ConfigError, NatsError].some((Speaking) => error instanceof Speaking);
    const reason = `${speaks ? "" : "cannot be asked: "}${reasonOf(error)}`;
    return [wrong(part, cleanLine(reason, 1_000), todo)];
  }
}

/** A deployed stack's own functions: those of CDK's helpers are run at deployments alone. */
export function ownFunctions(resources: readonly Resource[]): readonly Resource[] {
  return resources.filter(
    ({ type, id }) => type === "AWS::Lambda::Function" && !/^(Custom|LogRetention|AWS)/.test(id),
  );
}

/** A part that NATS does not let us look at. */
export function refused(part: string, refusal: Refusal): Finding {
  return wrong(part, `cannot be asked: ${cleanLine(refusal.says, 1_000)}`, permissionAdvice(refusal));
}

/** The names of AWS's errors that say that something is not there. */
export function isMissing(error: unknown): boolean {
  const names = [
    "ResourceNotFoundException",
    "NotFound",
    "NoSuchBucket",
    "QueueDoesNotExist",
    "AWS.SimpleQueueService.NonExistentQueue",
  ];
  return error instanceof Error && names.includes(error.name);
}
