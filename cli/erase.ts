import { Command } from "commander";
import * as z from "zod";
import { confirm } from "./confirm.ts";
import { CliError, EXIT } from "./errors.ts";
import { operatorName } from "./operator.ts";
import { common, STACK, taskKey, withCommon } from "./options.ts";
import { processOutput } from "./output.ts";
import { currentHome } from "./session.ts";
import { cleanLine } from "./text.ts";

const options = common.extend({
  stack: z.string().optional(),
  yes: z.boolean().default(false),
  streams: z.boolean().default(false),
  by: z.string().min(1).max(64).optional(),
});
type Options = z.infer<typeof options>;

export function eraseCommand(): Command {
  return withCommon(new Command("erase"))
    .description("remove the payload, results and artifacts of a task that is over; that it was done is kept")
    .argument("<task>", "its whole id", taskKey)
    .option("--streams", "delete its messages from the streams, too")
    .option("--by <name>", "who does it, for the record (default: the user of this machine)")
    .option("--yes", "do not ask")
    .option(...STACK)
    .action(async (task: string, given: unknown) => {
      process.exitCode = await erase(task, options.parse(given));
    });
}

async function erase(task: string, given: Options): Promise<number> {
  const out = processOutput(given.json);
  if (!given.yes && !out.interactive)
    throw new CliError(EXIT.usage, "what is erased is gone for good: without a terminal --yes is required");
  // The clients of AWS take long to load.
  const { openErasing } = await import("./erase/open.ts");
  await using erasing = await openErasing(currentHome(given), given);
  const found = await erasing.find(task);
  const question = `Erase what ${cleanLine(found.head.from, 64)} asked of ${found.head.to}, and what came of it, for good?`;
  if (!given.yes && !(await confirm(question))) {
    out.line("nothing is erased");
    return EXIT.failed;
  }
  const { by = operatorName(), streams } = given;
  const told = await erasing.erase(found, { by, streams });
  out.record({ task, ...told, at: new Date(told.at).toISOString() });
  const { values, objects, messages } = told;
  const count = (n: number, what: string) => `${n} ${what}${n === 1 ? "" : "s"}`;
  const gone = [
    count(values, "value"),
    count(objects, "artifact"),
    ...(streams ? [count(messages, "message")] : []),
  ];
  out.line(`${task} is erased: its payload and results, ${gone.join(", ")}`);
  if (!streams)
    out.note("its messages are on the streams for as long as these keep them; --streams deletes them");
  return EXIT.ok;
}
