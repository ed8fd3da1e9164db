import { Command } from "commander";
import * as z from "zod";
import type { Answered } from "../shared/events/operator-answer.ts";
import { CliError, EXIT } from "./errors.ts";
import { DATA_FOLDER, STACK, taskKey } from "./options.ts";
import { processOutput } from "./output.ts";
import { currentHome } from "./session.ts";

const options = z.object({
  stack: z.string().optional(),
  dataFolder: z.string().optional(),
  json: z.boolean().default(false),
  /** True when there is no reason. */
  deny: z.union([z.string(), z.literal(true)]).optional(),
  step: z.string().optional(),
});
type Options = z.infer<typeof options>;

export function approveCommand(): Command {
  return new Command("approve")
    .description("approve as the operator what only the operator may, or deny it")
    .argument("<task>", "its whole id", taskKey)
    .argument("[reason...]", "why, with --deny")
    .option("--deny [reason]", "deny it, and say why")
    .option("--step <name>", "answer this step's question and no other, by the name that `steps` shows")
    .option(...STACK)
    .option(...DATA_FOLDER)
    .option("--json", "one JSON object a line, for programs")
    .action(async (task: string, words: string[], given: unknown) => {
      process.exitCode = await approve(task, words, options.parse(given));
    });
}

async function approve(task: string, words: readonly string[], given: Options): Promise<number> {
  const { stack, dataFolder, json, deny, step } = given;
  if (deny === undefined && words.length > 0)
    throw new CliError(EXIT.usage, "an approval takes no words; to deny it, add --deny REASON");
  const denyReason = [...(typeof deny === "string" ? [deny] : []), ...words].join(" ");
  const verdict = { approve: deny === undefined, denyReason, step };
  const out = processOutput(json);
  // The clients of AWS take long to load.
  const { openAnswering } = await import("./open-answering.ts");
  using answering = await openAnswering(currentHome({ stack, dataFolder }), stack);
  const answered = await answering.answer(task, verdict);
  const of = "step" in answered ? answered.step : null;
  const asks = "asks" in answered ? answered.asks : null;
  out.record({ task, approve: verdict.approve, answered: of !== null, step: of, asks });
  if (!("step" in answered)) throw await refusal(answered, task, answering.label);
  out.line(`${task} is ${verdict.approve ? "approved" : "denied"}: step ${JSON.stringify(of)}`);
  return EXIT.ok;
}

/** Why there was nothing to answer. */
async function refusal(
  answered: Exclude<Answered, { step: string }>,
  task: string,
  stack: string,
): Promise<CliError> {
  if ("asks" in answered)
    return new CliError(
      EXIT.failed,
      `task ${task} asks of another step now: ${JSON.stringify(answered.asks)}`,
    );
  switch (answered.none) {
    case "unknown":
      return (await import("./record.ts")).noRecord(stack, task);
    case "over":
      return new CliError(EXIT.failed, `task ${task} is over already`);
    case "asks its requester":
      return new CliError(EXIT.failed, `task ${task} asks its requester: ./sluice authorize ${task}`);
    case "asks nothing":
      return new CliError(EXIT.failed, `task ${task} asks nothing now`);
  }
}
