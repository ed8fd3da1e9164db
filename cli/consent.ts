import { Command, InvalidArgumentError } from "commander";
import * as z from "zod";
import { DATA_FOLDER, runtime, STACK } from "./options.ts";

const options = z.object({
  stack: z.string().optional(),
  dataFolder: z.string().optional(),
  json: z.boolean().default(false),
});
export type ConsentOptions = z.infer<typeof options>;

export function allowCommand(): Command {
  return verb("allow", "let a peer ask one of our agents", async () => {
    const { allow } = await import("./policy/consent.ts");
    return allow;
  });
}

export function revokeCommand(): Command {
  return verb("revoke", "take a peer out of everything that names it in an agent's policy", async () => {
    const { revoke } = await import("./policy/consent.ts");
    return revoke;
  });
}

function verb(
  name: string,
  description: string,
  load: () => Promise<(agent: string, peer: string, given: ConsentOptions) => Promise<number>>,
): Command {
  return new Command(name)
    .description(description)
    .argument("<agent>", "an agent of the deployment: its short id or its runtime id")
    .argument("<peer>", "the peer's runtime id", peerId)
    .option(...STACK)
    .option(...DATA_FOLDER)
    .option("--json", "one JSON object a line, for programs")
    .action(async (agent: string, peer: string, given: unknown) => {
      process.exitCode = await (await load())(agent, peer, options.parse(given));
    });
}

function peerId(text: string): string {
  if (text.includes("*"))
    throw new InvalidArgumentError(
      'Expected one runtime id, no pattern; "*" opens an agent to everybody, and needs policy plan and policy apply.',
    );
  return runtime(text);
}
