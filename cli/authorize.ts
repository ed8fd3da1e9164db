import { Command } from "commander";
import * as z from "zod";
import { type Answering, answer } from "./answer.ts";
import { CliError, EXIT } from "./errors.ts";
import { common, runtime, seconds, taskKey, withCommon } from "./options.ts";
import { DEFAULT_WAIT_SEC } from "./reply.ts";

const options = common.extend({
  from: z.string().optional(),
  /** True when there is no reason. */
  deny: z.union([z.string(), z.literal(true)]).optional(),
  timeout: z.number(),
});

export function authorizeCommand(): Command {
  return withCommon(new Command("authorize"))
    .description("approve what a task asks approval for, or deny it")
    .argument("<task>", "its id", taskKey)
    .argument("[reason...]", "why, with --deny")
    .option("--deny [reason]", "deny it, and say why")
    .option("--from <runtime>", "as whom (default: whoever sent the task)", runtime)
    .option("--timeout <seconds>", "how long to wait until it is taken", seconds, DEFAULT_WAIT_SEC)
    .action(async (task: string, words: string[], given: unknown) => {
      const { deny, ...rest } = options.parse(given);
      process.exitCode = await answer(task, { kind: "auth_reply", a2a: verdict(deny, words) }, rest);
    });
}

/** @param words further words of the reason, which needs no quotes */
function verdict(
  deny: string | true | undefined,
  words: readonly string[],
): Extract<Answering, { kind: "auth_reply" }>["a2a"] {
  if (deny === undefined) {
    if (words.length === 0) return { approve: true };
    throw new CliError(EXIT.usage, "an approval takes no words; to deny it, add --deny REASON");
  }
  const denyReason = [...(deny === true ? [] : [deny]), ...words].join(" ");
  return { approve: false, ...(denyReason !== "" && { denyReason }) };
}
