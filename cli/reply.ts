import { Command } from "commander";
import * as z from "zod";
import { type Answering, answer } from "./answer.ts";
import { common, runtime, seconds, taskKey, withCommon } from "./options.ts";
import { readReply } from "./words.ts";

/** How long to wait for the executor to take an answer. */
export const DEFAULT_WAIT_SEC = 60;

const options = common.extend({
  from: z.string().optional(),
  file: z.string().optional(),
  data: z.string().optional(),
  timeout: z.number(),
});
type Options = z.infer<typeof options>;

export function replyCommand(): Command {
  return withCommon(new Command("reply"))
    .description("answer the question that a task has asked")
    .argument("<task>", "its id", taskKey)
    .argument("[text...]", "the answer; after --, its words may begin with -")
    .option("--file <path>", "take the answer from a file, - is stdin; *.json is sent as data")
    .option("--data <json>", "an answer that is data, as JSON")
    .option("--from <runtime>", "as whom (default: whoever sent the task)", runtime)
    .option("--timeout <seconds>", "how long to wait until it is taken", seconds, DEFAULT_WAIT_SEC)
    .action(async (task: string, words: string[], given: unknown) => {
      process.exitCode = await reply(task, words, options.parse(given));
    });
}

async function reply(task: string, words: readonly string[], given: Options): Promise<number> {
  const input = await readReply(words, given);
  const answering: Answering = { kind: "input_reply", a2a: { input } };
  return answer(task, answering, given);
}
