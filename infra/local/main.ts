import { statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import * as z from "zod";
import { shellQuoted } from "../../cli/repeat.ts";
import { type OperatorConfig, readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import { agentNotes, loadAgents } from "../../shared/config/load-agents.ts";
import { readServerUrls } from "../../shared/config/server-urls.ts";
import { ROOT } from "../bundle.ts";
import { synthesize } from "../synth.ts";
import { messageOf } from "./errors.ts";
import { delegateFirstTask, tellsNoStreams, whyGoOn, whyNoFirstTask } from "./first-task.ts";
import { type Host, type HostEvent, startHost } from "./host.ts";
import type { AlarmChange } from "./metrics/alarms.ts";
import { type Progress, progressOn } from "./progress.ts";

const DEFAULT_DATA = ".sluice";
const EXIT = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const;

const options = z.object({
  once: z.boolean().default(false),
  data: z.string(),
  natsPort: z.int().optional(),
  nats: z.array(z.string()).optional(),
  creds: z.string().optional(),
  ca: z.string().optional(),
  timeScale: z.number(),
  agentsDir: z.string(),
  config: z.string(),
  verbose: z.boolean().default(false),
});
type Options = z.infer<typeof options>;

const program = new Command("npm start --")
  .description("Runs Sluice on this machine: the functions of the synthesized stack on real local parts.")
  .option("--once", "delegate one task, then stop; exits 0 if it completed")
  .option("--data <folder>", "where everything lives that outlasts the host", DEFAULT_DATA)
  .addOption(
    new Option("--nats-port <port>", "port of the NATS server that is started (0 for any; default: 4222)")
      .argParser(port)
      .conflicts("nats"),
  )
  .option("--nats <url>", "use this NATS server instead; several URLs divided by commas")
  .option("--creds <file>", "credentials for it: .creds, nkey seed, token, or JSON with user and password")
  .option("--ca <file>", "PEM file of the authority that signed its certificate")
  .option("--time-scale <n>", "schedules, delays, leases, timeouts and visibility n times faster", scale, 1)
  .option("--agents-dir <folder>", "the agents' files", join(ROOT, "agents"))
  .option("--config <file>", "the operator's file", join(ROOT, "agents.yaml"))
  .option("--verbose", "the functions' logs, too")
  .exitOverride()
  .showHelpAfterError("(npm start -- --help for what is possible)");

/** Aborted when the bridge may not make the streams. */
const noStreams = new AbortController();

/** Runs the command line, and returns the exit code once nothing runs any more. */
async function main(argv: readonly string[]): Promise<number> {
  let chosen: Options;
  try {
    const { nats, ...rest } = program.parse([...argv], { from: "user" }).opts();
    chosen = options.parse({ ...rest, ...(nats !== undefined && { nats: servers(nats) }) });
    if (chosen.nats === undefined && (chosen.creds ?? chosen.ca) !== undefined)
      program.error("error: --creds and --ca are for the server that --nats names");
    if (chosen.creds?.startsWith("secret:"))
      program.error(
        "error: --creds: secrets are read by functions in the cloud; expected a file here, such as one that `aws secretsmanager get-secret-value --query SecretString --output text` has written",
      );
    mustBeThere(chosen);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    throw error;
  }
  const progress = progressOn(process.stdout);
  const interrupted = onInterrupt(progress);
  let host: Host | undefined;
  try {
    host = await start(chosen, progress, interrupted);
    const { deployment, notes } = await operatorConfigOf(chosen);
    for (const note of [...agentNotes(chosen.agentsDir), ...notes]) progress.line(`note: ${note}`);
    interrupted.throwIfAborted();
    const completed = await showFirstTask(host, deployment, chosen, progress, interrupted);
    if (chosen.once) return completed ? EXIT.ok : EXIT.failed;
    interrupted.throwIfAborted(); // a signal that has fired does not fire again
    rememberStart(chosen, argv);
    tellWhatNext(host, deployment, chosen, progress);
    await new Promise((resolve) => interrupted.addEventListener("abort", resolve, { once: true }));
    return EXIT.ok;
  } catch (error) {
    if (interrupted.aborted) return EXIT.interrupted;
    progress.done();
    process.stderr.write(`${messageOf(error)}\n`);
    return EXIT.failed;
  } finally {
    await host?.stop();
    progress.done();
  }
}

/** The usual files may be missing; whoever names one means it. */
function mustBeThere({ config, agentsDir, creds, ca }: Options): void {
  const given = (option: string) => program.getOptionValueSource(option) === "cli";
  for (const [option, file] of [
    ["--config", given("config") ? config : undefined],
    ["--creds", creds],
    ["--ca", ca],
  ] as const)
    if (file !== undefined && (placeOf(file)?.isDirectory() ?? true))
      program.error(`error: ${option}: there is no file ${file}`);
  if (given("agentsDir") && placeOf(agentsDir)?.isDirectory() !== true)
    program.error(`error: --agents-dir: there is no folder ${agentsDir}`);
}

const placeOf = (path: string) => statSync(path, { throwIfNoEntry: false });

function start(chosen: Options, progress: Progress, signal: AbortSignal): Promise<Host> {
  const dataDir = resolve(chosen.data);
  const outDir = join(dataDir, "cdk.out");
  return startHost({
    dataDir,
    assemblyDir: async () => {
      progress.doing("synthesizing the stack");
      const { agentsDir, config: agentsYaml } = chosen;
      const note = (line: string) => progress.line(`note: ${line}`);
      return (await synthesize({ agentsDir, agentsYaml, outDir, tell: note })).assemblyDir;
    },
    files: { config: resolve(chosen.config), agentsDir: resolve(chosen.agentsDir) },
    ...natsOf(chosen),
    timeScale: chosen.timeScale,
    signal,
    log: (event) => tell(event, chosen.verbose, progress),
  });
}

function natsOf({ nats, natsPort, creds, ca }: Options) {
  if (nats === undefined) return natsPort === undefined ? {} : { natsPort };
  return {
    nats: {
      servers: nats,
      ...(creds !== undefined && { credentials: `file:${resolve(creds)}` }),
      ...(ca !== undefined && { ca: resolve(ca) }),
    },
  };
}

async function operatorConfigOf({ agentsDir, config }: Options): Promise<OperatorConfig> {
  return readAgentsYaml(resolve(config), await loadAgents(agentsDir));
}

/** Whether the first task completed; what it could not do is said. */
async function showFirstTask(
  host: Host,
  deployment: DeploymentConfig,
  chosen: Options,
  progress: Progress,
  signal: AbortSignal,
): Promise<boolean> {
  const obstacle = whyNoFirstTask(deployment);
  if (obstacle !== undefined) {
    progress.line(`No first task: ${obstacle}`);
    return false;
  }
  try {
    return await firstTaskCompletes(host, deployment, chosen, progress, signal);
  } catch (error) {
    const why = whyGoOn(error);
    if (why === undefined) throw error;
    progress.line(why);
    return false;
  }
}

async function firstTaskCompletes(
  host: Host,
  deployment: DeploymentConfig,
  chosen: Options,
  progress: Progress,
  signal: AbortSignal,
): Promise<boolean> {
  const { state } = await delegateFirstTask({
    host,
    deployment,
    credentials: chosen.creds === undefined ? "none" : `file:${resolve(chosen.creds)}`,
    ca: chosen.ca,
    logsDir: join(chosen.data, "logs"),
    progress,
    signal,
    noStreams: noStreams.signal,
  });
  progress.done();
  return state === "TASK_STATE_COMPLETED";
}

function tell(event: HostEvent, verbose: boolean, progress: Progress): void {
  if (event.type === "progress") progress.doing(event.message);
  else if (event.type === "trouble") tellTrouble(event.message, progress);
  else if (event.type === "alarm") tellAlarm(event, progress);
  else if (verbose) progress.line(`[${event.functionName}] ${event.line}`);
}

function tellTrouble(message: string, progress: Progress): void {
  progress.line(`! ${message}`);
  if (tellsNoStreams(message)) noStreams.abort();
}

/** Only what somebody would be woken for, and that it is over. */
function tellAlarm({ name, description, from, to }: AlarmChange, progress: Progress): void {
  if (to === "ALARM") progress.line(`! alarm ${name}: ${description}`);
  else if (from === "ALARM") progress.line(`alarm ${name} is over`);
}

/**
 * Notes how it was started, for whoever has to start it again (cli/start-again.ts). It tells no secret: credentials are
 * in files.
 */
function rememberStart({ data }: Options, argv: readonly string[]): void {
  try {
    writeFileSync(join(data, "start.json"), `${JSON.stringify({ arguments: argv })}\n`);
  } catch {
    // Of a full disk the host itself tells.
  }
}

function tellWhatNext(host: Host, { agents }: DeploymentConfig, { data }: Options, progress: Progress): void {
  const agent = agents.find(({ id }) => id === "digest") ?? agents[0];
  // The command finds a host whose data lies in the usual place by itself.
  const where = resolve(data) === resolve(DEFAULT_DATA) ? "" : ` --data-folder ${shellQuoted(data)}`;
  for (const line of [
    "",
    `Sluice is up: NATS at ${host.endpoints.nats}, data and logs in ${data}. Next, in another terminal:`,
    "",
    ...(agent === undefined ? [] : [`  ./sluice ask ${agent.id} "any text, or JSON"${where}`]),
    `  ./sluice agents${where}`,
    "",
    "Ctrl-C stops it; the next start continues where it stopped, with agents and agents.yaml as they are then.",
  ])
    progress.line(line);
}

/** The first Ctrl-C, SIGTERM or hang-up asks to stop; the second ends everything at once. */
function onInterrupt(progress: Progress): AbortSignal {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(EXIT.interrupted); // the host's children go with it
    progress.doing("stopping; again to end everything at once");
    controller.abort(new Error("interrupted"));
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, stop);
  return controller.signal;
}

/** Not parsed by commander, whose error would show the text, and with it a password. */
function servers(text: unknown): string[] {
  const read = readServerUrls(String(text));
  if ("urls" in read) return read.urls;
  return program.error(`error: --nats: ${read.wrong}`);
}

function port(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError("Expected a port: a whole number from 0 to 65535.");
}

function scale(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && value >= 1 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError("Expected a number of at least 1.");
}

process.exit(await main(process.argv.slice(2)));
