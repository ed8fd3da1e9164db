import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { CliError, EXIT } from "../errors.ts";
import { keyFile } from "../key-file.ts";
import { reasonOf } from "../place.ts";

/**
 * The key that signs the confirmation tokens of tasks, made when it is first needed: one for each user of a machine, for
 * whoever only asks speaks NATS alone, and has no stack to keep it in.
 *
 * @throws CliError `failed` when it cannot be kept, others may read it, or it is not as it was made
 */
export function delegationKey(env: NodeJS.ProcessEnv): Uint8Array {
  const folder = stateFolder(env);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new CliError(
      EXIT.failed,
      `${folder}: there the key of confirmation tokens is kept, and it cannot be made: ${reasonOf(cause)}; set XDG_STATE_HOME`,
      { cause },
    );
  }
  return keyFile(folder);
}

/** A relative path is to be passed over (XDG Base Directory Specification, 0.8). */
function stateFolder({ XDG_STATE_HOME: state = "" }: NodeJS.ProcessEnv): string {
  return join(isAbsolute(state) ? state : join(homedir(), ".local", "state"), "sluice");
}
