import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { askTask } from "../../cli/ask.ts";
import { endText, eventLine } from "../../cli/render.ts";
import { colours, wantsColour } from "../../cli/text.ts";
import { commandRuntime, type DeploymentConfig, type HostedAgent } from "../../shared/config/deployment.ts";
import { connectNats, STREAMS } from "../../shared/nats/index.ts";
import { isTerminal, type TaskEvent } from "../../shared/wire/index.ts";
import { HostError } from "./errors.ts";
import type { Host } from "./host.ts";
import type { Progress } from "./progress.ts";

const AGENT = "digest";
const TEXT = "Sluice lets agents work for each other over NATS, and keeps no process alive for any of them.";
/** The bridge's first run makes the streams. */
const STREAMS_WITHIN_MS = 60_000;
const TASK_WITHIN_MS = 120_000;

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
}

/**
 * Why the deployment has nobody to send a first task to; undefined if it has.
 */
export function whyNoFirstTask(deployment: DeploymentConfig): string | undefined {
  const agent = digestOf(deployment);
  if (agent === undefined) return `no agent "${AGENT}" is hosted`;
  const { acceptFromRuntimes } = agent.policy;
  const from = commandRuntime(deployment.deployment);
  if (acceptFromRuntimes.includes("*") || acceptFromRuntimes.includes(from)) return undefined;
  return `agent "${AGENT}" does not accept tasks from ${from} (agents.yaml: acceptFromRuntimes)`;
}

/**
 * Delegates one task to `digest` as any peer would, over NATS alone, and shows its events until the last.
 *
 * @returns the terminal event
 * @throws HostError when the functions do not show signs of life; what {@link askTask} throws
 */
export async function delegateFirstTask(task: FirstTask): Promise<TaskEvent> {
  const { host, deployment, progress, signal, credentials, ca } = task;
  const from = commandRuntime(deployment.deployment);
  const agent = digestOf(deployment);
  if (agent === undefined) throw new HostError("part_failed", `no agent "${AGENT}" is hosted`);
  const nc = await connectNats({
    servers: host.endpoints.nats.split(","),
    credentials,
    ca: ca === undefined ? undefined : readFileSync(ca, "utf8"),
    name: "sluice-start",
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
      skill: "task",
      message: TEXT,
      timeoutMs: TASK_WITHIN_MS,
      signal,
      onEvent: (event) => progress.line(textOf(event).replaceAll(/^/gm, "  ")),
    });
  } finally {
    await nc.close();
  }
}

function digestOf(deployment: DeploymentConfig): HostedAgent | undefined {
  return deployment.agents.find(({ id }) => id === AGENT);
}

async function streams(nc: NatsConnection, { logsDir, signal }: FirstTask): Promise<void> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const deadline = Date.now() + STREAMS_WITHIN_MS;
  for (const { name } of STREAMS) {
    while (
      !(await jsm.streams.info(name).then(
        () => true,
        () => false,
      ))
    ) {
      signal.throwIfAborted();
      if (Date.now() > deadline)
        throw new HostError(
          "part_failed",
          `the bridge has not made the stream ${name}; see ${logsDir}/bridge.log`,
        );
      await sleep(100);
    }
  }
}
