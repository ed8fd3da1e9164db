import type { NatsConnection } from "@nats-io/transport-node";
import type { Messenger } from "../../shared/events/messenger.ts";
import { type EventStream, publisherOver } from "../../shared/events/publisher.ts";
import { EVENTS_STREAM } from "../../shared/nats/streams.ts";
import { dynamoStore } from "../../shared/tasks/dynamodb-store.ts";
import { pauseBy } from "../../shared/tasks/insist.ts";
import { MAX_INLINE_BYTES, type Values } from "../../shared/tasks/values.ts";
import { eventSubject } from "../../shared/wire/index.ts";
import { named, tableClient } from "./parts/table-client.ts";
import type { Operation, Process } from "./process.ts";
import type { World } from "./world.ts";

/** Asks something of NATS or the bucket. */
type Ask = <T>(what: () => string, writes: boolean, apply: () => T) => Promise<T>;

const noAnswer = () => named("TimeoutError", "no answer");

/** The parts as a process reaches them: with the real store and the real publisher over what is simulated. */
export function outside(world: World, process: Process) {
  const nats: Ask = (what, writes, apply) =>
    process.call({ what, writes, apply, silence: noAnswer, refusal: noAnswer });
  const values = valuesFor(world, process);
  const reach = <T>(operation: Operation<T>) =>
    process.call({ ...operation, apply: () => world.as(process, operation.apply) });
  return {
    store: dynamoStore({
      client: tableClient(world.table, reach),
      table: "tasks",
      pause: (ms) => pauseBy(process.clock.timer, ms),
    }),
    values,
    publisher: publisherOver(eventStream(world, nats), { values, now: process.clock.now }),
    messenger: messenger(world, nats),
    connection: async () =>
      connectionOf((subject, payload) => {
        const what = () => `says ${payload} of ${subject}`;
        return nats(what, true, () => world.acknowledge(subject, payload));
      }),
    tell: (taskId: string) =>
      nats(
        () => `tells of ${taskId}`,
        true,
        () => world.tell(taskId),
      ),
    listen: (taskId: string, told: () => void) =>
      nats(
        () => `listens for ${taskId}`,
        false,
        () => world.listen(process, taskId, told),
      ),
    hint: (hint: object, delaySeconds = 0) =>
      process.call({
        what: () => `hints at ${JSON.stringify(hint)} in ${delaySeconds} s`,
        writes: true,
        apply: () => world.queues.work.send(JSON.stringify(hint), delaySeconds * 1_000),
        silence: () => named("QueueSendError", "no answer from the queue"),
        refusal: () => named("QueueSendError", "the queue refuses"),
      }),
  };
}

function eventStream({ streams, objects, publish }: World, nats: Ask): EventStream {
  return {
    putObject: ({ key, bytes }) =>
      nats(
        () => `copies the artifact ${key}`,
        true,
        () => void objects.set(key, bytes),
      ),
    publish: ({ subject, msgId, body }) =>
      nats(
        () => `publishes ${msgId}`,
        true,
        () => publish({ subject, msgId, body }),
      ),
    lastOn: (subject) =>
      nats(
        () => `reads the last on ${subject}`,
        false,
        () => {
          const last = streams.lastOn(EVENTS_STREAM, subject);
          return last === undefined ? null : { subject: last.subject, body: Buffer.from(last.body) };
        },
      ),
  };
}

function messenger({ streams, objects, publish }: World, nats: Ask): Messenger {
  return {
    send: (message) =>
      nats(
        () => `sends ${message.subject}`,
        true,
        () => publish(message),
      ),
    countArtifacts: ({ executor, delegator, childTaskId }) => {
      const subject = eventSubject(executor, delegator, childTaskId, "artifact");
      return nats(
        () => `counts what is on ${subject}`,
        false,
        () => streams.countOn(EVENTS_STREAM, subject),
      );
    },
    // No handler there takes a silence for an approval.
    controlsHeard: (runtime) =>
      nats(
        () => `asks what is heard of the controls for ${runtime}`,
        false,
        () => ({ waiting: 0, unsettled: 0, handedOut: 0, settled: 0 }),
      ),
    fetch: ({ key }) =>
      nats(
        () => `fetches the artifact ${key}`,
        false,
        () => objects.get(key) ?? missing(key),
      ),
  };
}

function missing(key: string): never {
  throw new Error(`no object ${key}`);
}

/** A connection of which only the requests are used by which a message is acknowledged. */
function connectionOf(request: (subject: string, payload: string) => Promise<void>): NatsConnection {
  // Bodies always travel inline here, so nothing else of a connection is asked for.
  return { request } as unknown as NatsConnection;
}

function valuesFor({ values }: World, process: Process): Values {
  const bucket = <T>(what: () => string, writes: boolean, apply: () => Promise<T>): Promise<T> => {
    const refusal = () => named("SlowDown", "slow down");
    return process.call({ what, writes, apply, silence: noAnswer, refusal }).then((answer) => answer);
  };
  return {
    ...values,
    put: (taskId, bytes) =>
      bucket(
        () => `puts a value of ${taskId}`,
        true,
        () => values.put(taskId, bytes),
      ),
    get: (ref) =>
      bucket(
        () => `gets ${ref.key}`,
        false,
        () => values.get(ref),
      ),
    async keep(taskId, text) {
      if (Buffer.byteLength(text) <= MAX_INLINE_BYTES) return { text };
      return await bucket(
        () => `keeps a value of ${taskId}`,
        true,
        () => values.keep(taskId, text),
      );
    },
    async text(kept) {
      if ("text" in kept) return kept.text;
      return await bucket(
        () => `gets ${kept.ref.key}`,
        false,
        () => values.text(kept),
      );
    },
  };
}
