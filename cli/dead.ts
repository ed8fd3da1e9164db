import { Command, InvalidArgumentError } from "commander";
import * as z from "zod";
import { common, STACK, withCommon } from "./options.ts";

/** What every verb of `dead` takes. */
const options = common.extend({
  stack: z.string().optional(),
  queue: z.string().optional(),
  all: z.boolean().default(false),
  yes: z.boolean().default(false),
});
export type DeadOptions = z.infer<typeof options>;

type Verb = (id: string | undefined, given: DeadOptions) => Promise<number>;

export function deadCommand(): Command {
  return new Command("dead")
    .description("what nobody could take: look at dead letters, send them back, drop them")
    .addCommand(
      verb("list", "show all dead letters, and why they died", async () => {
        const { list } = await import("./dead/list.ts");
        return (_, given) => list(given);
      }),
    )
    .addCommand(
      verb("show", "show all that is known of one", async () => {
        const { show } = await import("./dead/show.ts");
        return (id = "", given) => show(id, given);
      }).argument("<id>", "its id, or how it begins", letterId),
    )
    .addCommand(
      verb("redrive", "send one, or all, back to where it came from", async () => {
        const { redriveSome } = await import("./dead/settle.ts");
        return redriveSome;
      })
        .argument("[id]", "its id, or how it begins", letterId)
        .option("--all", "all of them, or all of --queue"),
    )
    .addCommand(
      verb("drop", "delete one, or all, for good", async () => {
        const { dropSome } = await import("./dead/settle.ts");
        return dropSome;
      })
        .argument("[id]", "its id, or how it begins", letterId)
        .option("--all", "all of them, or all of --queue")
        .option("--yes", "do not ask"),
    );
}

/** @param load the clients of AWS take long to load, and no other verb needs them */
function verb(name: string, description: string, load: () => Promise<Verb>): Command {
  return withCommon(new Command(name))
    .description(description)
    .option("--queue <name>", "only of this queue, such as tasks")
    .option(...STACK)
    .action(async (...given: unknown[]) => {
      // commander gives the arguments, then the options, then the command.
      const id = given.length > 2 ? z.string().optional().parse(given[0]) : undefined;
      process.exitCode = await (await load())(id, options.parse(given.at(-2)));
    });
}

function letterId(text: string): string {
  if (/^[A-Za-z0-9-]{8,100}$/.test(text)) return text;
  throw new InvalidArgumentError(
    "Expected a dead letter's id, or at least the first 8 characters of it: A-Z, a-z, 0-9 and -.",
  );
}
