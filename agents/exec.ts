import { defineAgent, skill } from "sluice";
import * as z from "zod";
import { addedArgs, allowed, dataOf, endOf, outputOf, resolve, run } from "./parts/command.ts";

/** What the operator allows (parts/command.ts). */
export const settings = z.strictObject({ commands: allowed });

const request = z.strictObject({ command: z.string(), args: addedArgs });

/** `{ command, args }` as data, or a text: the command's name and arguments, divided by white space. */
export const input = z.preprocess((given) => {
  if (typeof given !== "string") return given;
  const [command, ...args] = given.trim().split(/\s+/);
  return { command, args };
}, request);

export default defineAgent({
  id: "exec",
  description: "Runs one of the commands that the operator allows, and returns its exit code and output.",
  settings,
  skills: {
    task: skill({
      name: "Run a command",
      description: 'Takes a command\'s name and arguments, as text or as { "command": …, "args": […] }.',
      tags: ["command"],
      settings,
      input,
      async run(task, step) {
        const { command: name, args } = task.input;
        const command = resolve("commands", task.settings.commands, { name, args });
        step.status(`running ${name}`);
        // Once stored it never runs again; if the worker dies meanwhile, the next one starts the command anew.
        const ran = await step.run("run", ({ signal }) => run(command, signal));
        return {
          text: [`${name}: ${endOf(ran)}`, outputOf(ran)].filter((text) => text !== "").join("\n"),
          data: { command: name, argv: command.argv, ...dataOf(ran) },
        };
      },
    }),
  },
});
