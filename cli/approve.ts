import { Command } from "commander";
import * as z from "zod";
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
});
type Options = z.infer<typeof options>;

export function approveCommand(): Command {
  return new Command("approve")
    .description("approve as the operator what only the operator may, or deny it")
    .argument("<task>", "its whole id", taskKey)
    .argument("[reason...]", "why, with --deny")
    .option("--deny [reason]", "deny it, and say why")
    .option(...STACK)
    .option(...DATA_FOLDER)
    .option("--json", "one JSON object a line, for programs")
    .action(async (task: string, words: string[], given: unknown) => {
      process.exitCode = await approve(task, words, options.parse(given));
    });
}

async function approve(task: string, words: readonly string[], given: Options): Promise<number> {
  const { stack, dataFolder, json, deny } = given;
  if (deny === undefined && words.length > 0)
    throw new CliError(EXIT.usage, "an approval takes no words; to deny it, add --deny REASON");
  const denyReason = [...(typeof deny === "string" ? [deny] : []), ...words].join(" ");
  const verdict = { approve: deny === undefined, denyReason };
  const out = processOutput(json);
  // The clients of AWS take long to load.
  const [{ openAnswering }, { noRecord }] = await Promise.all([
    import("./open-answering.ts"),
    import("./record.ts"),
  ]);
  using answering = await openAnswering(currentHome({ stack, dataFolder }), stack);
  const answered = await answering.answer(task, verdict);
  out.record({ task, approve: verdict.approve, answered: answered === "answered" });
  if (answered === "unknown") throw noRecord(answering.label, task);
  if (answered === "over") throw new CliError(EXIT.failed, `task ${task} is over already`);
  if (answered === "asks its requester")
    throw new CliError(EXIT.failed, `task ${task} asks its requester: ./sluice authorize ${task}`);
  if (answered === "asks nothing") throw new CliError(EXIT.failed, `task ${task} asks nothing now`);
  out.line(`${task} is ${verdict.approve ? "approved" : "denied"}`);
  return EXIT.ok;
}
