import { Command, InvalidArgumentError } from "commander";
import * as z from "zod";
import { DATA_FOLDER, STACK } from "./options.ts";

const options = z.object({
  stack: z.string().optional(),
  dataFolder: z.string().optional(),
  json: z.boolean().default(false),
  history: z.boolean().default(false),
  set: z.array(z.string()).default([]),
  unset: z.array(z.string()).default([]),
  file: z.string().optional(),
  change: z.string().optional(),
  token: z.string().optional(),
});
/** What every verb of `policy` takes. */
export type PolicyOptions = z.infer<typeof options>;

type Verb = (agent: string, given: PolicyOptions) => Promise<number>;

export function policyCommand(): Command {
  return new Command("policy")
    .description("what an agent may be asked and may ask: look at it, and change it while it runs")
    .addCommand(
      verb("show", "show the policy in force, and where each field comes from", async () => {
        const { show } = await import("./policy/show.ts");
        return show;
      }).option("--history", "show who has changed it instead, the latest first"),
    )
    .addCommand(
      withChange(
        verb("plan", "show what a change would do, and keep it for `policy apply`", async () => {
          const { plan } = await import("./policy/plan.ts");
          return plan;
        }),
      ),
    )
    .addCommand(
      withChange(
        verb("apply", "make a change that was planned, or a harmless one at once", async () => {
          const { apply } = await import("./policy/apply.ts");
          return apply;
        }),
      )
        .option("--change <id>", "the one that was planned", changeId)
        .option("--token <token>", "the confirmation token, for a sensitive one"),
    );
}

function withChange(command: Command): Command {
  return command
    .option("--set <key=value>", "a field's new value, in YAML; may be repeated", collect)
    .option("--unset <key>", "give a field back to agents.yaml; may be repeated", collect)
    .option("--file <path>", "a YAML file of fields; null gives one back to agents.yaml");
}

function collect(text: string, before: string[] = []): string[] {
  return [...before, text];
}

function changeId(text: string): string {
  if (/^chg_[0-9a-f]{16}$/.test(text)) return text;
  throw new InvalidArgumentError("Expected a change's id: chg_ and 16 hexadecimal digits.");
}

/** @param load the clients of AWS take long to load, and no other verb needs them */
function verb(name: string, description: string, load: () => Promise<Verb>): Command {
  return new Command(name)
    .description(description)
    .argument("<agent>", "an agent of the deployment: its short id or its runtime id")
    .option(...STACK)
    .option(...DATA_FOLDER)
    .option("--json", "one JSON object a line, for programs")
    .action(async (agent: string, given: unknown) => {
      process.exitCode = await (await load())(agent, options.parse(given));
    });
}
