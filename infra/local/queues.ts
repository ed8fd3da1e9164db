import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Socket } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { CreateBucketCommand, HeadBucketCommand, S3Client } from "@aws-sdk/client-s3";
import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  GetQueueUrlCommand,
  QueueDoesNotExist,
  SetQueueAttributesCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { type FauxqsServer, startFauxqs } from "fauxqs";
import * as z from "zod";
import { awsSettings } from "./aws.ts";
import { ACCOUNT, REGION } from "./intrinsics.ts";
import type { QueueDeclaration } from "./stack.ts";

/** The largest object that one request may put; S3 itself takes 5 GB, but here it passes through memory. */
const MAX_BODY_BYTES = 256 * 1024 * 1024;

/** SQS's and S3's stand-in, in this process, with its data in a folder. */
export class Queues {
  readonly url: string;
  readonly #server: FauxqsServer;
  readonly #guard: (message: unknown) => void;

  static async start(folder: string): Promise<Queues> {
    subscribe("fastify.initialization", takeLargeBodies);
    using _ = lightCommits();
    try {
      const server = await startFauxqs({
        port: 0,
        logger: false,
        host: "127.0.0.1",
        defaultRegion: REGION,
        dataDir: folder,
        s3StorageDir: `${folder}/s3`,
      });
      return new Queues(server);
    } finally {
      unsubscribe("fastify.initialization", takeLargeBodies);
    }
  }

  private constructor(server: FauxqsServer) {
    this.#server = server;
    this.url = `http://127.0.0.1:${server.port}`;
    // It listens on every interface and asks nobody who they are; only this machine has business here.
    this.#guard = (message) => refuseStrangers(message, server.port);
    subscribe("net.server.socket", this.#guard);
  }

  /** What the URL of each queue begins with. */
  get queueUrlBase(): string {
    return `${this.url}/${ACCOUNT}`;
  }

  /** Creates the declared queues, or brings their attributes up to date; `dead` ones first, as others name them. */
  async declareQueues(queues: readonly QueueDeclaration[]): Promise<void> {
    const client = new SQSClient(awsSettings(this.url));
    try {
      const deadFirst = [...queues].sort((a, b) => rank(a) - rank(b));
      for (const queue of deadFirst) await declareQueue(client, queue);
    } finally {
      client.destroy();
    }
  }

  /**
   * Gives back what the pollers of an earlier host had received when it ended: nobody works on it any more, and its
   * visibility timeout may be hours away.
   */
  async releaseReceived(queues: readonly QueueDeclaration[]): Promise<void> {
    const client = new SQSClient(awsSettings(this.url));
    try {
      for (const { name } of queues)
        for (const { receiptHandle } of this.#server.inspectQueue(name)?.messages.inflight ?? [])
          await client.send(
            new ChangeMessageVisibilityCommand({
              QueueUrl: `${this.queueUrlBase}/${name}`,
              ReceiptHandle: receiptHandle,
              // Not 0: with a data directory fauxqs 2.4.1 loses the message then (it stores no receive count).
              VisibilityTimeout: 1,
            }),
          );
    } finally {
      client.destroy();
    }
  }

  async declareBuckets(names: readonly string[]): Promise<void> {
    const client = new S3Client({ ...awsSettings(this.url), forcePathStyle: true });
    try {
      for (const Bucket of names)
        await client
          .send(new HeadBucketCommand({ Bucket }))
          .catch(() => client.send(new CreateBucketCommand({ Bucket })));
    } finally {
      client.destroy();
    }
  }

  /** What a queue holds: messages to be received, received ones, and when the oldest of them was sent. */
  look(name: string): { visible: number; inFlight: number; oldestSentAt: number | undefined } {
    const { ready = [], inflight = [] } = this.#server.inspectQueue(name)?.messages ?? {};
    const sent = [...ready, ...inflight.map(({ message }) => message)].map((of) => of.sentTimestamp);
    // One whose time is over is to be received again, as in SQS; fauxqs 2.4.1 sees that with the next receive only, and
    // from a dead-letter queue nobody may ever receive again.
    const now = Date.now();
    const inFlight = inflight.filter(({ visibilityDeadline }) => visibilityDeadline > now).length;
    return {
      visible: ready.length + inflight.length - inFlight,
      inFlight,
      oldestSentAt: sent.length === 0 ? undefined : Math.min(...sent),
    };
  }

  async stop(): Promise<void> {
    await this.#server.stop();
    unsubscribe("net.server.socket", this.#guard);
  }
}

async function declareQueue(client: SQSClient, { name, attributes }: QueueDeclaration): Promise<void> {
  try {
    const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: name }));
    if (Object.keys(attributes).length > 0)
      await client.send(new SetQueueAttributesCommand({ QueueUrl, Attributes: { ...attributes } }));
  } catch (error) {
    if (!(error instanceof QueueDoesNotExist)) throw error;
    await client.send(new CreateQueueCommand({ QueueName: name, Attributes: { ...attributes } }));
  }
}

function rank(queue: QueueDeclaration): number {
  return queue.attributes.RedrivePolicy === undefined ? 0 : 1;
}

function refuseStrangers(message: unknown, port: number): void {
  const socket =
    typeof message === "object" && message !== null && "socket" in message ? message.socket : undefined;
  if (!(socket instanceof Socket) || socket.localPort !== port) return;
  if (!/^(::1|(::ffff:)?127\.)/.test(socket.remoteAddress ?? "")) socket.destroy();
}

/**
 * fauxqs 2.4.1 writes each message three times, each time waiting for the disk, and this process with it. A commit
 * that the kernel has taken outlives this process; only a machine that fails can lose the last ones, and the file
 * stays whole (SQLite: "PRAGMA synchronous", NORMAL with a write-ahead log). It cannot be told so: what it opens here
 * is.
 */
function lightCommits(): Disposable {
  const { exec } = DatabaseSync.prototype;
  DatabaseSync.prototype.exec = function (sql) {
    exec.call(this, sql);
    if (sql === "PRAGMA journal_mode = WAL") exec.call(this, "PRAGMA synchronous = NORMAL");
  };
  return {
    [Symbol.dispose]() {
      DatabaseSync.prototype.exec = exec;
    },
  };
}

/** fauxqs 2.4.1 takes bodies of up to 11 MiB and cannot be told otherwise, except where its server is made. */
function takeLargeBodies(message: unknown): void {
  initialization.parse(message).fastify.addHook("onRoute", (route) => {
    route.bodyLimit = MAX_BODY_BYTES;
  });
}

interface Fastify {
  addHook(name: "onRoute", hook: (route: { bodyLimit?: number }) => void): unknown;
}
const initialization = z.object({
  fastify: z.custom<Fastify>(
    (value) =>
      typeof value === "object" &&
      value !== null &&
      "addHook" in value &&
      typeof value.addHook === "function",
  ),
});
