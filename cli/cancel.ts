import { Command } from "commander";
import * as z from "zod";
import { isTerminal } from "../shared/wire/index.ts";
import { findTask, notSent, sendControl } from "./control.ts";
import { EXIT } from "./errors.ts";
import { common, runtime, seconds, taskKey, withCommon } from "./options.ts";
import { endText, eventLine, stateName } from "./render.ts";
import { inSession } from "./session.ts";
import { awaitEnd } from "./task.ts";

const DEFAULT_WAIT_SEC = 60;

const options = common.extend({
  from: z.string().optional(),
  reason: z.string().optional(),
  timeout: z.number(),
});
type Options = z.infer<typeof options>;

export function cancelCommand(): Command {
  return withCommon(new Command("cancel"))
    .description("cancel a task and wait until it is over")
    .argument("<task>", "its id", taskKey)
    .option("--reason <text>", "why, for the executor's records")
    .option("--from <runtime>", "as whom (default: whoever sent the task)", runtime)
    .option("--timeout <seconds>", "how long to wait", seconds, DEFAULT_WAIT_SEC)
    .action(async (task: string, given: unknown) => {
      process.exitCode = await cancel(task, options.parse(given));
    });
}

async function cancel(id: string, { from, reason, timeout, ...given }: Options): Promise<number> {
  return inSession(given, async ({ nc, out, interrupted }) => {
    await using found = await findTask(nc, id, from);
    const { view, feed } = found;
    const taskId = view.task;
    if (isTerminal(view.state)) {
      out.record(notSent(view));
      out.line(`${taskId} is over already: ${stateName(view.state)}`);
      return exitCodeOf(view.state);
    }

    await sendControl(nc, view, {
      kind: "cancel",
      ...(reason !== undefined && { reason, a2a: { reason } }),
    });
    out.line(`${"sent".padEnd(10)} cancel to ${view.executor}`);
    out.waitingFor(`waiting for ${view.executor}`);
    const end = await awaitEnd(
      feed,
      { taskId },
      {
        timeoutMs: timeout * 1_000,
        onEvent(event) {
          out.record(event);
          if (!isTerminal(event.state)) out.line(eventLine(event, out.colours));
        },
        signal: interrupted,
      },
    );
    out.done();
    out.line(endText(end, out.colours));
    return exitCodeOf(end.state);
  });
}

/** Asked for was a cancellation; any other end means that it came too late. */
function exitCodeOf(state: string): number {
  return state === "TASK_STATE_CANCELED" ? EXIT.ok : EXIT.failed;
}
