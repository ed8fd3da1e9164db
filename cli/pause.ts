import { Command } from "commander";
import * as z from "zod";
import { EXIT } from "./errors.ts";
import { operatorName } from "./operator.ts";
import { DATA_FOLDER, STACK } from "./options.ts";
import { processOutput } from "./output.ts";
import { withPlace } from "./repeat.ts";
import { currentHome } from "./session.ts";

const options = z.object({
  stack: z.string().optional(),
  dataFolder: z.string().optional(),
  json: z.boolean().default(false),
  refuse: z.boolean().default(false),
});
type Options = z.infer<typeof options>;

function verb(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .argument("<agent>", "an agent of the deployment: its short id (digest) or its runtime id (local-digest)")
    .option(...STACK)
    .option(...DATA_FOLDER)
    .option("--json", "one JSON object a line, for programs");
}

export function pauseCommand(): Command {
  return verb("pause", "let none of an agent's tasks be taken up, until it is resumed")
    .option("--refuse", "reject new tasks as overloaded, rather than let them wait")
    .action(async (agent: string, given: unknown) => {
      process.exitCode = await pause(agent, options.parse(given));
    });
}

export function resumeCommand(): Command {
  return verb("resume", "let an agent's tasks be taken up again").action(
    async (agent: string, given: unknown) => {
      process.exitCode = await resume(agent, options.parse(given));
    },
  );
}

async function pause(name: string, { stack: stackName, dataFolder, json, refuse }: Options): Promise<number> {
  const out = processOutput(json);
  const { openPauses } = await import("./pauses.ts");
  using pauses = await openPauses(currentHome({ stack: stackName, dataFolder }), stackName);
  const agent = pauses.agent(name);
  const { at, by } = await pauses.pause(agent, { at: Date.now(), by: operatorName(), refuse });
  const told = { agent: agent.id, runtime: agent.runtime, paused: true, refuse };
  out.record({ ...told, since: new Date(at).toISOString(), by });
  const meanwhile = refuse ? "new tasks are rejected as overloaded" : "new tasks wait";
  out.line(
    `${agent.runtime} is paused: ${meanwhile}; go on with ${withPlace(`./sluice resume ${agent.id}`)}`,
  );
  return EXIT.ok;
}

async function resume(name: string, { stack: stackName, dataFolder, json }: Options): Promise<number> {
  const out = processOutput(json);
  const { openPauses } = await import("./pauses.ts");
  using pauses = await openPauses(currentHome({ stack: stackName, dataFolder }), stackName);
  const agent = pauses.agent(name);
  const { wasPaused, offered } = await pauses.resume(agent);
  out.record({ agent: agent.id, runtime: agent.runtime, paused: false, wasPaused, offered });
  const tasks = offered === 1 ? "1 task that was held back is" : `${offered} tasks that were held back are`;
  out.line(
    `${agent.runtime} ${wasPaused ? "is resumed" : "was not paused"}${offered > 0 ? `: ${tasks} offered` : ""}`,
  );
  return EXIT.ok;
}
