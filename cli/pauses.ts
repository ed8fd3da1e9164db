import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { timing } from "../shared/config/timing.ts";
import { dynamoPauses } from "../shared/tasks/dynamodb-pauses.ts";
import { dynamoStore } from "../shared/tasks/dynamodb-store.ts";
import type { Pause } from "../shared/tasks/pauses.ts";
import { isTerminal } from "../shared/wire/index.ts";
import { type StackAgent, stackAgent } from "./agent-name.ts";
import { pairsOf } from "./dead/pairs.ts";
import { CliError, EXIT } from "./errors.ts";
import { hintAt } from "./hint.ts";
import type { Home } from "./home.ts";
import { clientSettings, findPlace, type Place, reach } from "./place.ts";

/** The agents of a stack, to be paused and resumed. */
export interface OpenPauses extends Disposable {
  /** @throws CliError `usage` when the stack has no such agent */
  agent(name: string): StackAgent;
  /** Pauses an agent; of one that is paused already the beginning stays. */
  pause(agent: StackAgent, of: Pause): Promise<Pause>;
  pauseOf(runtime: string): Promise<Pause | undefined>;
  /**
   * Ends a pause, and hints at what was held back. It may be repeated at will, and goes on where it was interrupted.
   *
   * @returns how many tasks were offered to the workers
   */
  resume(agent: StackAgent): Promise<{ readonly wasPaused: boolean; readonly offered: number }>;
}

/** @throws CliError as {@link findPlace} */
export async function openPauses(
  home: Pick<Home, "stack" | "deployment" | "agents">,
  name?: string,
): Promise<OpenPauses> {
  return pausesOf(home, await findPlace(home, name));
}

/** The pauses of a stack that was found. */
export function pausesOf(home: Pick<Home, "deployment" | "agents">, place: Place): OpenPauses {
  const { label, outputs, local } = place;
  const dynamodb = new DynamoDBClient(clientSettings(place, "dynamodb"));
  const sqs = new SQSClient(clientSettings(place, "sqs"));
  const access = { client: DynamoDBDocumentClient.from(dynamodb), table: outputs.TableName };
  const pauses = dynamoPauses(access);
  const store = dynamoStore(access);
  const scale = timing(local?.timeScale);

  /** Hints at a task that was held back, unless it is over. */
  async function offer(taskId: string, queueUrl: string): Promise<boolean> {
    const head = await store.head(taskId);
    if (head === undefined || isTerminal(head.state)) return false;
    const { body, delaySec } = hintAt(head, { timing: scale, now: Date.now() });
    await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: body, DelaySeconds: delaySec }));
    return true;
  }

  return {
    agent: (of) => stackAgent(home, place, of),

    async pause({ runtime }, of) {
      const known = await reach(label, pauses.pauseOf(runtime));
      const pause = known === undefined ? of : { ...known, refuse: of.refuse };
      await reach(label, pauses.pause(runtime, pause));
      return pause;
    },

    pauseOf: (runtime) => reach(label, pauses.pauseOf(runtime)),

    async resume({ id, runtime }) {
      const queueUrl = queueOf(place, id);
      // In this order: who holds a task back looks whether the pause still is once that is noted.
      const wasPaused = await reach(label, pauses.resume(runtime));
      let offered = 0;
      for await (const taskId of pauses.held(runtime)) {
        if (await reach(label, offer(taskId, queueUrl))) offered++;
        await reach(label, pauses.release(runtime, taskId));
      }
      return { wasPaused, offered };
    },

    [Symbol.dispose]() {
      dynamodb.destroy();
      sqs.destroy();
    },
  };
}

/** The queue on which an agent's hints go: its own, if it has one. */
export function queueOf({ outputs, label }: Place, agent: string): string {
  const pairs = pairsOf(outputs);
  const pair =
    pairs.find(({ name }) => name === `work-${agent}`) ?? pairs.find(({ name }) => name === "work");
  if (pair === undefined)
    throw new CliError(EXIT.failed, `${label} does not tell its queues: it is of an older version`);
  return pair.url;
}
