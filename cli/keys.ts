import { Command } from "commander";
import * as z from "zod";
import { DATA_FOLDER, STACK } from "./options.ts";

/** What both verbs of `keys` take. */
const options = z.object({
  stack: z.string().optional(),
  dataFolder: z.string().optional(),
  json: z.boolean().default(false),
  yes: z.boolean().default(false),
});
export type KeysOptions = z.infer<typeof options>;

export function keysCommand(): Command {
  return new Command("keys")
    .description("the key by which the deployment signs its cards: look at it, replace it")
    .addCommand(
      verb("show", "show the key's did:key, since when it is in use, and which it has followed", async () => {
        return (await import("./keys/show.ts")).show;
      }),
    )
    .addCommand(
      verb("rotate", "put a new key in its place, which the old one names as its successor", async () => {
        return (await import("./keys/rotate.ts")).rotate;
      }).option("--yes", "do not ask"),
    );
}

/** @param load the clients of AWS take long to load, and no other verb needs them */
function verb(
  name: string,
  description: string,
  load: () => Promise<(given: KeysOptions) => Promise<number>>,
): Command {
  return new Command(name)
    .description(description)
    .option(...STACK)
    .option(...DATA_FOLDER)
    .option("--json", "one JSON object a line, for programs")
    .action(async (given: unknown) => {
      process.exitCode = await (await load())(options.parse(given));
    });
}
