import { Command } from "commander";
import * as z from "zod";
import { isTerminal, type TaskState } from "../shared/wire/index.ts";
import { EXIT } from "./errors.ts";
import { common, runtime, STACK, taskKey, withCommon } from "./options.ts";
import { stateName } from "./render.ts";
import { inSession } from "./session.ts";

const options = common.extend({
  stack: z.string().optional(),
  from: z.string().optional(),
  again: z.boolean().default(false),
});
type Options = z.infer<typeof options>;

export function retryCommand(): Command {
  return withCommon(new Command("retry"))
    .description("run a failed or cancelled task again, as a new task with the same input")
    .argument("<task>", "its whole id", taskKey)
    .option("--from <runtime>", "as whom (default: whoever sent the task, who then hears of it)", runtime)
    .option("--again", "once more, though it has been retried already")
    .option(...STACK)
    .action(async (task: string, given: unknown) => {
      process.exitCode = await retry(task, options.parse(given));
    });
}

/** A further retry is refused until the last is over. */
function nextOf(taskId: string, state: TaskState): string {
  return isTerminal(state) ? "add --again to run it once more" : `./sluice status ${taskId} follows it`;
}

async function retry(task: string, given: Options): Promise<number> {
  // The clients of AWS take long to load.
  const [{ findPlace }, { openPlace }, { retryTask }] = await Promise.all([
    import("./place.ts"),
    import("./stack.ts"),
    import("./retry/retry-task.ts"),
  ]);
  const { from, again } = given;
  return inSession(given, async ({ nc, home, place, out }) => {
    using opened = openPlace(place ?? (await findPlace(home)));
    const { sent, state, ...retried } = await retryTask({ nc, stack: opened }, task, { from, again });
    out.record({ task, ...retried, sent, state: state ?? null });
    const { taskId, to } = retried;
    if (sent) out.line(`${"sent".padEnd(10)} ${taskId} to ${to} as ${retried.from}, a retry of ${task}`);
    else if (state === undefined) out.line(`${taskId} is on its way to ${to} already, a retry of ${task}`);
    else out.line(`${task} has been retried as ${taskId}: ${stateName(state)}; ${nextOf(taskId, state)}`);
    return EXIT.ok;
  });
}
