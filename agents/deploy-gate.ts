import { defineAgent, FatalError, skill } from "sluice";
import * as z from "zod";
import { addedArgs, allowed, dataOf, endOf, outputOf, resolve, run } from "./parts/command.ts";

const DAY_SEC = 86_400;
/** What the approver reads must be short enough to be read. */
const MAX_ARGS = 16;
const MAX_ARG_LENGTH = 200;

export const settings = z.strictObject({
  /** What may be deployed, and the command that does it (parts/command.ts). */
  targets: allowed,
  /** How long an approved deployment can still be cancelled before it begins; 0 for not at all. */
  graceSec: z
    .int()
    .min(0)
    .max(7 * DAY_SEC)
    .default(60),
  /** How long the requester has to approve; silence is a denial. */
  approveWithinSec: z
    .int()
    .min(1)
    .max(30 * DAY_SEC)
    .default(DAY_SEC),
});

const request = z.strictObject({
  target: z.string(),
  /** What is deployed, and why, in the words that the approver reads. */
  description: z.string().trim().min(1, "expected a description of the deployment").max(1_000),
  args: addedArgs.refine(
    (args) => args.length <= MAX_ARGS && args.every((arg) => arg.length <= MAX_ARG_LENGTH),
    `expected at most ${MAX_ARGS} arguments of at most ${MAX_ARG_LENGTH} characters`,
  ),
});

/** `{ target, description, args }` as data, or a text: the target, then the description. */
export const input = z.preprocess((given) => {
  if (typeof given !== "string") return given;
  const [, target, description] = /^\s*(\S*)\s*(.*)$/s.exec(given) ?? [];
  return { target, description };
}, request);

/** An argv as a person reads it: what is no plain word stands in quotation marks. */
function shown(argv: readonly string[]): string {
  return argv.map((arg) => (/^[\w./:=@,+-]+$/.test(arg) ? arg : JSON.stringify(arg))).join(" ");
}

export default defineAgent({
  id: "deploy-gate",
  description: "Deploys what the operator allows, once it is approved and a grace period is over.",
  settings,
  skills: {
    task: skill({
      name: "Deploy",
      description:
        'Takes a target and a description, as text or as { "target": …, "description": …, "args": […] }; asks for approval, waits, deploys.',
      tags: ["deployment", "approval"],
      settings,
      input,
      async run(task, step) {
        const { target, description } = task.input;

        // Stored before anybody is asked: what is approved is what will run, whatever the settings are by then.
        const plan = await step.run("plan", () => {
          const { targets, graceSec } = task.settings;
          const command = resolve("targets", targets, { name: target, args: task.input.args });
          const neededMs = graceSec * 1_000 + command.timeoutMs;
          if (task.deadline - step.now().getTime() < neededMs)
            throw new FatalError(`${target} may take ${neededMs / 1_000} s: ask with a timeout above that`);
          return { command, graceSec };
        });
        const { command, graceSec } = plan;

        // A denial and silence throw ApprovalDenied. Nobody catches it: it ends the task as it should.
        const begins = graceSec > 0 ? ` ${graceSec} s after your approval; a cancel until then stops it` : "";
        await step.approve(
          "approval",
          `Deploy ${target}: ${description}\nThis runs ${shown(command.argv)}${begins}. Do you approve?`,
          { timeout: task.settings.approveWithinSec * 1_000, onTimeout: "deny" },
        );

        if (graceSec > 0) {
          step.status(`approved; ${target} is deployed in ${graceSec} s unless this task is cancelled`);
          await step.sleep("grace period", graceSec * 1_000);
        }

        step.status(`deploying ${target}`);
        // If the worker dies meanwhile the command is run again: the task's id lets it know a repetition.
        const ran = await step.run("deploy", ({ signal }) => run(command, signal, { SLUICE_TASK: task.id }), {
          retry: false,
        });
        const output = outputOf(ran);
        if (output !== "") await step.artifact("log", { text: `${output}\n`, filename: `${target}.log` });

        if (ran.exitCode !== 0)
          throw new FatalError(`${target} is not deployed: ${endOf(ran)}\n${output.slice(-1_000)}`);
        return {
          text: `${target} is deployed: ${description}`,
          data: { target, argv: command.argv, ...dataOf(ran) },
        };
      },
    }),
  },
});
