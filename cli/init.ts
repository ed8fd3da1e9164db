import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command } from "commander";
import * as z from "zod";
import { agentName } from "../shared/agents/define.ts";
import { commandRuntime, deploymentName } from "../shared/config/deployment.ts";
import { runtimeAgentId } from "../shared/wire/ids.ts";
import { askLine } from "./confirm.ts";
import { CliError, EXIT } from "./errors.ts";
import { readFolder } from "./home.ts";
import { whoMayAsk } from "./init/acceptance.ts";
import { agentText, configText, editorText } from "./init/templates.ts";
import { type Written, writeNew } from "./init/write.ts";
import { type Output, processOutput } from "./output.ts";
import { shellQuoted } from "./repeat.ts";
import { CLONE, startOf } from "./start-again.ts";
import { cleanLine } from "./text.ts";

const DEFAULTS = { deployment: "local", agent: "hello", description: "Greets whoever writes to it." };

const options = z.object({
  deployment: z.string().optional(),
  agent: z.string().optional(),
  description: z.string().optional(),
  yes: z.boolean().default(false),
  json: z.boolean().default(false),
});
type Options = z.infer<typeof options>;
type Answers = typeof DEFAULTS;

/** On NATS `<deployment>-cli` is the command itself, whatever the deployment. */
const isTaken = (agent: string) =>
  runtimeAgentId(DEFAULTS.deployment, agent, agent) === commandRuntime(DEFAULTS.deployment);

/** What each answer must be. */
const SHAPES: Readonly<Record<keyof Answers, z.ZodType<string>>> = {
  deployment: deploymentName,
  agent: agentName.refine((id) => !isTaken(id), "expected another name: on NATS cli is the command sluice"),
  description: z.string().trim().min(1, "expected a sentence").max(500, "expected at most 500 characters"),
};
const QUESTIONS: Readonly<Record<keyof Answers, string>> = {
  deployment: "Name of the deployment, first part of its agents' ids",
  agent: "Name of the first agent",
  description: "What it does, in a sentence",
};

export function initCommand(): Command {
  return new Command("init")
    .description("write a first agents.yaml and a first agent, by asking; nothing that is there is changed")
    .argument("[folder]", "where to", ".")
    .option("--deployment <name>", "do not ask for the deployment's name")
    .option("--agent <id>", "do not ask for the agent's name")
    .option("--description <text>", "do not ask what the agent does")
    .option("--yes", `do not ask at all: what is not said is ${DEFAULTS.deployment} and ${DEFAULTS.agent}`)
    .option("--json", "one JSON object a line, for programs")
    .action(async (folder: string, given: unknown) => {
      process.exitCode = await init(resolve(folder), options.parse(given));
    });
}

async function init(folder: string, given: Options): Promise<number> {
  const out = processOutput(given.json);
  const answers = await answersOf(given, out, deploymentIn(folder));
  const written = await writeNew(folder, [
    { path: `agents/${answers.agent}.ts`, text: agentText(answers) },
    { path: "agents.yaml", text: configText(answers) },
    // In the clone all is found.
    ...(isInClone(folder) ? [] : [{ path: "tsconfig.json", text: editorText(CLONE) }]),
  ]);
  for (const { path, isNew } of written) {
    out.record({ path, outcome: isNew ? "written" : "kept" });
    out.line(`${(isNew ? "written" : "kept").padEnd(8)} ${path}${isNew ? "" : "  (it is there already)"}`);
  }
  for (const line of nextSteps(folder, answers, written)) out.line(line);
  return written.some(({ isNew }) => isNew) ? EXIT.ok : EXIT.failed;
}

function isInClone(folder: string): boolean {
  return `${folder}/`.startsWith(`${CLONE}/`);
}

/** The deployment that a folder's `agents.yaml` names, if it has one: to that another agent is added. */
function deploymentIn(folder: string): string | undefined {
  const { config, deployment } = readFolder(folder);
  return existsSync(config) ? deployment : undefined;
}

/** What was said, asked or is usual. */
async function answersOf(options: Options, out: Output, deployment: string | undefined): Promise<Answers> {
  if (deployment !== undefined && (options.deployment ?? deployment) !== deployment)
    throw new CliError(
      EXIT.usage,
      `--deployment ${cleanLine(options.deployment ?? "")}: the agents.yaml that is there says deployment: ${deployment}; leave the option out, or name another folder`,
    );
  const said = { ...DEFAULTS };
  const isAllSaid = deployment !== undefined && options.agent !== undefined;
  const given = { ...options, yes: options.yes || isAllSaid, deployment: deployment ?? options.deployment };
  for (const key of ["deployment", "agent", "description"] as const) {
    const option = given[key];
    if (option !== undefined) said[key] = checked(key, option, `--${key}`);
    else if (given.yes || (key === "description" && !out.interactive)) continue;
    else if (out.interactive) said[key] = await asked(key, out);
    else throw new CliError(EXIT.usage, `--${key}: without a terminal it is required, or --yes`);
  }
  return said;
}

function checked(key: keyof Answers, text: string, name: string): string {
  const read = SHAPES[key].safeParse(text);
  if (read.success) return read.data;
  throw new CliError(EXIT.usage, `${name}: ${read.error.issues[0]?.message}`);
}

/** Asks until the answer fits. */
async function asked(key: keyof Answers, out: Output): Promise<string> {
  for (;;) {
    const answer = await askLine(`${QUESTIONS[key]} [${DEFAULTS[key]}]: `);
    if (answer === undefined) throw new CliError(EXIT.interrupted, "nothing is written");
    const read = SHAPES[key].safeParse(answer.trim() === "" ? DEFAULTS[key] : answer);
    if (read.success) return read.data;
    out.note(read.error.issues[0]?.message ?? "expected something else");
  }
}

function nextSteps(folder: string, { agent }: Answers, written: readonly Written[]): string[] {
  const host = folder === CLONE ? "" : ` --data-folder ${shellQuoted(join(folder, ".sluice"))}`;
  const kept = written.some(({ path, isNew }) => path === "agents.yaml" && !isNew);
  return [
    "",
    ...(process.cwd() === CLONE ? [] : [`in the clone (${CLONE}):`]),
    startOf(folder),
    `./sluice ask ${agent} "Hello"${host}`,
    ...(kept ? ["", whoMayAsk("agents.yaml", readFileSync(`${folder}/agents.yaml`, "utf8"), agent)] : []),
  ];
}
