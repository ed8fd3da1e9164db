import type { Socket } from "node:net";
import type { Endpoints } from "../../../infra/local/host.ts";
import { type Came, callNoter, SEEN_CALLS_FILE } from "../seen-calls.ts";
import type { Write } from "./aws-writes.ts";
import { callerOf, type Running } from "./callers.ts";
import { type PartProxy, startHttpProxy } from "./http-proxy.ts";
import { startNatsProxy } from "./nats-proxy.ts";
import type { NatsWrite } from "./nats-writes.ts";
import { type Part, type Point, Points } from "./points.ts";

const seenFile = process.env[SEEN_CALLS_FILE];
/** Notes what functions ask AWS for, where that is recorded (test/infra/record.ts). */
const noted = seenFile === undefined ? undefined : callNoter(seenFile);

interface Origin {
  readonly body: Buffer;
  readonly subject: string;
  readonly socket: Socket;
}

/**
 * What stands between the functions and NATS, DynamoDB, SQS and S3: each write stops at {@link Proxies.points}, before
 * its part has seen it and before its caller is told the answer. The functions know nothing of it; a host is given
 * {@link Proxies.route}.
 */
export class Proxies {
  readonly points = new Points();
  readonly #proxies = new Map<Part, PartProxy>();
  readonly #running: () => Running;
  /** Of acknowledgement subjects that went by, the tasks. */
  readonly #acks = new Map<string, string>();
  /** Of processes, the tasks that they have claimed last. */
  readonly #claims = new Map<number, string>();

  /** @param running the functions' processes, asked for at each write */
  constructor(running: () => Running) {
    this.#running = running;
  }

  /** Starts the proxies, or new ones for a host that is started again. */
  readonly route = async (real: Endpoints): Promise<Endpoints> => {
    await this.stop();
    const { points } = this;
    const before = (point: Point) => points.before(point);
    const after = (point: Point, refused: boolean) => points.after(point, refused);
    const read = (part: Part, kind: string) => points.read(part, kind);
    const came = noted && ((of: Came, socket: Socket) => noted(this.#callerAt(socket)?.name, of));
    for (const part of ["dynamodb", "sqs", "s3"] as const) {
      const pointOf = (of: Part, write: Write, origin: Origin) => this.#awsPoint(of, write, origin);
      this.#proxies.set(
        part,
        await startHttpProxy({
          part,
          target: real[part],
          pointOf,
          before,
          after,
          read,
          ...(came && { came }),
        }),
      );
    }
    const nats = await startNatsProxy({
      target: real.nats,
      taskOfAck: (subject) => this.#acks.get(subject),
      pointOf: (write, origin) => this.#natsPoint(write, origin),
      before,
      after,
    });
    this.#proxies.set("nats", nats);
    return { dynamodb: this.#url("dynamodb"), sqs: this.#url("sqs"), s3: this.#url("s3"), nats: nats.url };
  };

  /** Puts a part out of the functions' reach, or back. */
  outOfReach(part: Part, out: boolean): void {
    this.#proxies.get(part)?.outOfReach(out);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#proxies.values()].map((proxy) => proxy.stop()));
    this.#proxies.clear();
  }

  #url(part: Part): string {
    return this.#proxies.get(part)?.url ?? "";
  }

  #awsPoint(part: Part, write: Write, { body, subject, socket }: Origin): Point {
    const caller = this.#callerAt(socket);
    for (const ack of write.acks) this.#acks.set(ack.subject, ack.task);
    if (write.claims !== undefined && caller !== undefined) this.#claims.set(caller.pid, write.claims);
    return { part, kind: write.kind, tasks: write.tasks, body, subject, caller };
  }

  #natsPoint({ kind, task }: NatsWrite, { body, subject, socket }: Origin): Point {
    const caller = this.#callerAt(socket);
    // A worker is at one task at a time: an object's chunk, which names none, is that task's.
    const known = task ?? (caller?.name.includes("work") ? this.#claims.get(caller.pid) : undefined);
    return { part: "nats", kind, tasks: known === undefined ? [] : [known], body, subject, caller };
  }

  readonly #callers = new WeakMap<Socket, Point["caller"]>();

  #callerAt(socket: Socket): Point["caller"] {
    const known = this.#callers.get(socket);
    if (known !== undefined) return known;
    const { remotePort, localPort } = socket;
    if (remotePort === undefined || localPort === undefined) return undefined;
    const caller = callerOf({ remotePort, localPort }, this.#running());
    if (caller !== undefined) this.#callers.set(socket, caller);
    return caller;
  }
}

/** Kills the process that makes a write, as `kill -9` does; the write or its answer goes down with it. */
export function killCaller(point: Point): "cut" {
  if (point.caller === undefined)
    throw new Error(`${point.kind}: its caller is none of the host's functions`);
  try {
    process.kill(point.caller.pid, "SIGKILL");
  } catch {
    // ESRCH: it is gone already
  }
  return "cut";
}
