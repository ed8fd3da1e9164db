import type { Head } from "../../shared/tasks/items.ts";
import { ValueGone } from "../../shared/tasks/values.ts";
import { CliError, EXIT } from "../errors.ts";
import { reach } from "../place.ts";
import type { OpenStack } from "../stack.ts";

/**
 * A task's payload, from wherever admission has put it.
 *
 * @throws CliError `failed` when it is gone
 */
export async function inputOf({ store, values, label }: OpenStack, head: Head): Promise<unknown> {
  const { taskId, digest, input } = head;
  const gone = (error: unknown) => {
    if (error instanceof ValueGone) return undefined;
    throw error;
  };
  const text = async () => {
    if (input === undefined) return undefined;
    return "item" in input ? store.input(taskId, digest) : values.text(input).catch(gone);
  };
  const found = await reach(label, text());
  if (found === undefined)
    throw new CliError(
      EXIT.failed,
      `task ${taskId}: its input is gone${head.erased === undefined ? "" : ": it was erased"}`,
    );
  return JSON.parse(found);
}
