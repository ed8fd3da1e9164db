import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { JetStreamApiCodes, JetStreamApiError, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { askTask } from "../../cli/ask.ts";
import { TimedOut } from "../../cli/errors.ts";
import { endText, eventLine } from "../../cli/render.ts";
import { colours, wantsColour } from "../../cli/text.ts";
import { commandRuntime, type DeploymentConfig, type HostedAgent } from "../../shared/config/deployment.ts";
import { clientName, connectNats, NatsError, STREAMS } from "../../shared/nats/index.ts";
import { refusalOf, unmadeStream } from "../../shared/nats/refusal.ts";
import { isTerminal, type TaskEvent } from "../../shared/wire/index.ts";
import { HostError, messageOf } from "./errors.ts";
import type { Host } from "./host.ts";
import type { Progress } from "./progress.ts";

const AGENT = "digest";
const SKILL = "task";
const TEXT = "Sluice lets agents work for each other over NATS, and keeps no process alive for any of them.";
/** The bridge's first run makes the streams. */
const STREAMS_WITHIN_MS = 60_000;
const TASK_WITHIN_MS = 120_000;
const NOBODY = "no agent of its own is hosted that has the skill task";

/** Where the first task goes, and as whom it is sent. */
export interface FirstTask {
  readonly host: Pick<Host, "endpoints">;
  readonly deployment: DeploymentConfig;
  readonly credentials: string;
  /** The path of a PEM file. */
  readonly ca: string | undefined;
  readonly logsDir: string;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** Aborted when the bridge may not make the streams: then nobody will. */
  readonly noStreams?: AbortSignal;
}

/** Whether this is what the host tells of a bridge that may not make the streams. */
export function tellsNoStreams(trouble: string): boolean {
  return STREAMS.some(({ name }) => trouble.endsWith(unmadeStream(name)));
}

/**
 * Why the deployment has nobody to send a first task to; undefined if it has.
 */
export function whyNoFirstTask(deployment: DeploymentConfig): string | undefined {
  const agent = firstOf(deployment);
  if (agent === undefined) return NOBODY;
  if (isOpen(deployment, agent)) return undefined;
  const from = commandRuntime(deployment.deployment);
  return `agent "${agent.id}" does not accept tasks from ${from} (agents.yaml: acceptFromRuntimes)`;
}

/**
 * Delegates one task to `digest`, or where that is not hosted to another agent, as any peer would, over NATS alone, and shows its events until the last.
 *
 * @returns the terminal event
 * @throws HostError when the functions do not show signs of life; what {@link askTask} throws
 */
export async function delegateFirstTask(task: FirstTask): Promise<TaskEvent> {
  const { host, deployment, progress, signal, credentials, ca } = task;
  const from = commandRuntime(deployment.deployment);
  const agent = firstOf(deployment);
  if (agent === undefined) throw new HostError("part_failed", NOBODY);
  const settings = {
    servers: host.endpoints.nats.split(","),
    credentials,
    ca: ca === undefined ? undefined : readFileSync(ca, "utf8"),
    name: clientName(deployment.deployment, "start"),
  };
  const nc = await connectNats(settings).catch((error: unknown) => {
    throw refusedHere(error, settings) ?? error;
  });
  try {
    progress.doing("waiting for the bridge");
    await streams(nc, task);
    progress.line(`${from} asks ${agent.runtime}: ${TEXT}`);
    progress.doing(`waiting for ${agent.runtime}`);
    const palette = colours(wantsColour(process.stdout.isTTY === true, process.env));
    const textOf = (event: TaskEvent) => (isTerminal(event.state) ? endText : eventLine)(event, palette);
    return await askTask(nc, {
      from,
      to: agent.runtime,
      channelRef: agent.channelRef,
      skill: SKILL,
      message: TEXT,
      timeoutMs: TASK_WITHIN_MS,
      signal,
      onEvent: (event) => progress.line(textOf(event).replaceAll(/^/gm, "  ")),
    });
  } finally {
    await nc.close();
  }
}

/**
 * The agent that comes with Sluice for this, or the first that a text can be sent to. None that is a remote one: what it
 * does with a text that nobody has written for it, at each start, is not ours to try.
 */
function firstOf(deployment: DeploymentConfig): HostedAgent | undefined {
  const able = deployment.agents.filter(
    ({ remote, skills }) => remote === undefined && skills.some(({ slug }) => slug === SKILL),
  );
  return able.find(({ id }) => id === AGENT) ?? able.find((agent) => isOpen(deployment, agent)) ?? able[0];
}

function isOpen({ deployment }: DeploymentConfig, { policy }: HostedAgent): boolean {
  const { acceptFromRuntimes } = policy;
  return acceptFromRuntimes.includes("*") || acceptFromRuntimes.includes(commandRuntime(deployment));
}

/**
 * What keeps the first task from showing its end, though everything else works: NATS does not let our user ask, which is
 * as it should be for one that may do what the functions do and no more; or the agent takes its time, as for a question.
 *
 * @returns undefined where something else is wrong
 */
export function whyGoOn(error: unknown): string | undefined {
  if (error instanceof TimedOut) return `The first task has ${error.message}`;
  const refusal = refusalOf(error);
  if (refusal === undefined) return undefined;
  return `No first task: ${refusal.says}; give it what \`./sluice nats-permissions --local\` prints (docs/nats.md)`;
}

/** Of a server that does not take who we are: here an option names that, and not the operator's file. */
function refusedHere(
  error: unknown,
  { servers, credentials }: { readonly servers: readonly string[]; readonly credentials: string },
): HostError | undefined {
  if (!(error instanceof NatsError) || error.code !== "nats_refused") return undefined;
  const todo =
    credentials === "none"
      ? "give a user's credentials with --creds FILE"
      : `see that ${credentials.replace(/^file:/, "")} (--creds) holds those of a user that it knows`;
  const says = `NATS at ${servers.join(", ")} refused who we are (${messageOf(error.cause)}); ${todo}`;
  return new HostError("part_failed", says, { cause: error });
}

async function streams(nc: NatsConnection, { logsDir, signal, noStreams }: FirstTask): Promise<void> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const deadline = Date.now() + STREAMS_WITHIN_MS;
  for (const { name } of STREAMS) {
    for (;;) {
      const trouble = await jsm.streams.info(name).then(
        () => undefined,
        (error: unknown) => ({ error }),
      );
      if (trouble === undefined) break;
      signal.throwIfAborted();
      if (refusalOf(trouble.error) !== undefined) throw trouble.error;
      if (noStreams?.aborted && isMissing(trouble.error))
        throw new HostError("part_failed", unmadeStream(name), { cause: trouble.error });
      if (Date.now() > deadline) throw noStream(name, trouble.error, logsDir);
      await sleep(100);
    }
  }
}

function noStream(name: string, error: unknown, logsDir: string): HostError {
  const what = isMissing(error)
    ? `the bridge has not made the stream ${name}`
    : `the stream ${name} cannot be seen: ${messageOf(error)}`;
  return new HostError("part_failed", `${what}; see ${logsDir}/bridge.log`, { cause: error });
}

function isMissing(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;
}
