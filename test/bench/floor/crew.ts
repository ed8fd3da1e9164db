import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { CreateQueueCommand, SQSClient } from "@aws-sdk/client-sqs";
import { AckPolicy, jetstreamManager } from "@nats-io/jetstream";
import { build } from "esbuild";
import { MODULE_BANNER } from "../../../infra/function-build.ts";
import { awsSettings } from "../../../infra/local/aws.ts";
import type { Load } from "../load.ts";
import { bareClient, type Client, sdkClient, type Targets } from "./client.ts";
import { Feeder } from "./feeder.ts";
import {
  type Assignment,
  type Order,
  type PartCall,
  type Role,
  report,
  type Script,
  type Way,
} from "./orders.ts";

/** The agent whose tasks the floor does; as long a name as that of the agent that the script was read from. */
export const EXECUTOR = "acme-floored";

const HERE = import.meta.dirname;
/** What each of them runs. */
export const PROGRAM = resolve(HERE, "../../../.cache/bench/floor-process.mjs");
const DURABLE = "floor";
/** As the stack declares: tasks are admitted by tens, and worked on one by one. */
const MAX_BATCH = 10;

/** How many processes of each role. */
export type Sizes = Readonly<Record<Role, number>>;

/** The processes of the floor, over the parts of a running product and queues of their own. */
export class Crew {
  readonly #members: { readonly role: Role; readonly child: ChildProcess }[] = [];
  readonly #clients: Readonly<Record<Way, Client>>;
  #feeders: readonly Feeder[] = [];
  #way: Way = "bare";

  private constructor(targets: Targets) {
    this.#clients = { sdk: sdkClient(targets), bare: bareClient(targets) };
  }

  static async start({ sluice }: Load, script: Script, sizes: Sizes): Promise<Crew> {
    const { host, nats, peer } = sluice;
    const { dynamodb, sqs } = host.endpoints;
    const jsm = await jetstreamManager(peer.nc);
    await jsm.consumers.add("A2A_TASKS", {
      durable_name: DURABLE,
      ack_policy: AckPolicy.Explicit,
      filter_subject: `a2a.v1.task.*.${EXECUTOR}.>`,
    });
    const [tasksQueueUrl, workQueueUrl, measureQueueUrl] = await queues(sqs);
    const assignment = {
      way: "bare" as const,
      dynamodb,
      sqs,
      nats: nats.url,
      tasksQueueUrl,
      workQueueUrl,
      measureQueueUrl,
      consumer: DURABLE,
      script: renamed(script),
    };
    await bundle();
    const crew = new Crew({ dynamodb, sqs });
    const roles = ["bridge", "admit", "work", "measure"] as const;
    const all = roles.flatMap((role) => Array<Role>(sizes[role]).fill(role));
    // A few at a time: starting is what a processor has to do.
    for (let at = 0; at < all.length; at += 4)
      await Promise.all(all.slice(at, at + 4).map((role) => crew.#start({ ...assignment, role })));
    crew.#feed(assignment);
    return crew;
  }

  /** Has all calls made in this way from now on. */
  use(way: Way): void {
    this.#way = way;
    for (const { child } of this.#members) tell(child, { way });
  }

  /** Has the processes for that make so many calls each, all at once; gives how many were made a second. */
  async measure(part: PartCall, count: number, lanes: number): Promise<number> {
    const measuring = this.#members.filter(({ role }) => role === "measure");
    const took = await Promise.all(
      measuring.map(async ({ child }, at) => {
        const said = once(child, "message");
        tell(child, { measure: part, count, lanes, mark: `m${Date.now().toString(36)}x${at}` });
        const answer = report.parse((await said)[0]);
        return "ms" in answer ? answer.ms : Number.NaN;
      }),
    );
    return (count * measuring.length) / (Math.max(...took) / 1_000);
  }

  pids(of: Role): number[] {
    return this.#members.filter(({ role }) => role === of).flatMap(({ child }) => child.pid ?? []);
  }

  stop(): void {
    for (const feeder of this.#feeders) feeder.stop();
    for (const { child } of this.#members) child.kill("SIGKILL");
  }

  #feed({ tasksQueueUrl, workQueueUrl }: Pick<Assignment, "tasksQueueUrl" | "workQueueUrl">): void {
    const children = (of: Role) => this.#members.filter(({ role }) => role === of).map(({ child }) => child);
    const client = () => this.#clients[this.#way];
    this.#feeders = [
      new Feeder({ queueUrl: tasksQueueUrl, most: MAX_BATCH, children: children("admit"), client }),
      new Feeder({ queueUrl: workQueueUrl, most: 1, children: children("work"), client }),
    ];
  }

  async #start(assignment: Assignment): Promise<void> {
    const child = fork(PROGRAM, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    this.#members.push({ role: assignment.role, child });
    const ready = once(child, "message");
    child.send(assignment);
    await ready;
  }
}

function tell(child: ChildProcess, order: Order): void {
  child.send(order);
}

async function queues(endpoint: string): Promise<[string, string, string]> {
  const client = new SQSClient(awsSettings(endpoint));
  const make = async (name: string) => {
    await client.send(new CreateQueueCommand({ QueueName: name }));
    return `${endpoint}/000000000000/${name}`;
  };
  const urls: [string, string, string] = [
    await make("floor-tasks"),
    await make("floor-work"),
    await make("floor-measure"),
  ];
  client.destroy();
  return urls;
}

/** The script for the floor's own agent. */
function renamed(script: Script): Script {
  const [, , , executor = ""] = script.accepted.subject.split(".");
  const text = (of: string) => of.replaceAll(executor, EXECUTOR);
  const event = ({ subject, msgId, body }: Script["accepted"]) => ({
    subject: text(subject),
    msgId: text(msgId),
    body: text(body),
  });
  const { accepted, result, taskId, messageId, ackSubject, ...requests } = script;
  const { forwarded, hint, head, claim, step, end, settle } = requests;
  return {
    taskId,
    messageId,
    ackSubject,
    forwarded: forwarded.replaceAll(`.${executor}.`, `.${EXECUTOR}.`),
    hint: text(hint),
    head: text(head),
    claim: text(claim),
    step: text(step),
    end: text(end),
    settle: text(settle),
    accepted: event(accepted),
    result: event(result),
  };
}

/** As the product's functions are: a bundle starts faster. */
async function bundle(): Promise<void> {
  await build({
    entryPoints: [join(HERE, "process-main.ts")],
    outfile: PROGRAM,
    bundle: true,
    platform: "node",
    target: "node24",
    format: "esm",
    mainFields: ["module", "main"],
    minify: true,
    banner: { js: MODULE_BANNER },
    logLevel: "silent",
  });
}
