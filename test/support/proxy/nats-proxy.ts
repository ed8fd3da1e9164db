import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import type { PartProxy } from "./http-proxy.ts";
import { type Frame, FrameReader } from "./nats-frames.ts";
import { type NatsWrite, natsWrite } from "./nats-writes.ts";
import type { Point, Verdict } from "./points.ts";

export interface NatsProxyOptions {
  /** The real server's URL. */
  readonly target: string;
  readonly taskOfAck: (ackSubject: string) => string | undefined;
  /** Told the subject of each publish that changes nothing. */
  readonly reads?: (subject: string) => void;
  /** The point that a write is. */
  readonly pointOf: (write: NatsWrite, of: { body: Buffer; subject: string; socket: Socket }) => Point;
  readonly before: (point: Point) => Promise<Verdict>;
  readonly after: (point: Point, refused: boolean) => Promise<Verdict>;
}

/** Starts a proxy before a nats-server without TLS. */
export async function startNatsProxy(options: NatsProxyOptions): Promise<PartProxy> {
  const links = new Set<Link>();
  let out = false;
  const server = createServer((client) => {
    if (out) return void client.resetAndDestroy();
    const link = new Link(options, client);
    links.add(link);
    client.once("close", () => links.delete(link));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `nats://127.0.0.1:${port}`,
    outOfReach(value) {
      out = value;
      if (out) for (const link of links) link.cut();
    },
    async stop() {
      server.close();
      for (const link of links) link.cut();
    },
  };
}

/** One client's connection and that to the server. Each direction is taken frame by frame, in order. */
class Link {
  readonly #options: NatsProxyOptions;
  readonly #client: Socket;
  readonly #server: Socket;
  /** Writes whose answer has not come, by the subject on which it is awaited. */
  readonly #pending = new Map<string, Point>();

  constructor(options: NatsProxyOptions, client: Socket) {
    this.#options = options;
    this.#client = client;
    const { hostname, port } = new URL(options.target);
    this.#server = connect(Number(port), hostname);
    for (const socket of [client, this.#server]) {
      socket.setNoDelay(true);
      socket.on("error", () => {}); // the close that follows says it
      socket.once("close", () => this.cut());
    }
    this.#pump(client, (frame) => this.#fromClient(frame));
    this.#pump(this.#server, (frame) => this.#fromServer(frame));
  }

  cut(): void {
    this.#client.resetAndDestroy();
    this.#server.destroy();
  }

  #pump(from: Socket, take: (frame: Frame) => Promise<void> | void): void {
    const frames = new FrameReader();
    let last: Promise<void> = Promise.resolve();
    from.on("data", (chunk) => {
      const read = frames.push(chunk);
      last = last
        .then(async () => {
          for (const frame of read) if (!from.destroyed) await take(frame);
        })
        .catch(() => this.cut());
    });
  }

  async #fromClient(frame: Frame): Promise<void> {
    const [subject = "", reply] = frame.args;
    const { taskOfAck, reads, pointOf, before } = this.#options;
    const publishes = frame.op === "PUB" || frame.op === "HPUB";
    const write = publishes ? natsWrite(subject, frame.body, taskOfAck) : undefined;
    if (publishes && write === undefined) reads?.(subject);
    if (write === undefined) return this.#send(this.#server, frame.raw);

    const point = pointOf(write, { body: frame.body, subject, socket: this.#client });
    const verdict = await before(point);
    if (verdict === "cut") return this.cut();
    if (verdict === "drop") return;
    const answered = write.answered && reply !== undefined;
    if (answered) this.#pending.set(reply, point);
    await this.#send(this.#server, frame.raw);
    if (verdict === "twice") await this.#send(this.#server, frame.raw);
    if (!answered) await this.#told(point, undefined);
  }

  async #fromServer(frame: Frame): Promise<void> {
    if (frame.op === "INFO") return this.#send(this.#client, withoutOtherUrls(frame));
    const [subject = ""] = frame.args;
    const delivers = frame.op === "MSG" || frame.op === "HMSG";
    const point = delivers ? this.#pending.get(subject) : undefined;
    if (point === undefined) return this.#send(this.#client, frame.raw);
    this.#pending.delete(subject);
    await this.#told(point, frame.raw);
  }

  /** The part has answered; `answer` is undefined for what it does not answer. */
  async #told(point: Point, answer: Buffer | undefined): Promise<void> {
    const refused = answer?.includes('"error":{') ?? false;
    const verdict = await this.#options.after(point, refused);
    if (verdict === "cut") return this.cut();
    if (answer === undefined || verdict === "drop") return;
    await this.#send(this.#client, answer);
    if (verdict === "twice") await this.#send(this.#client, answer);
  }

  async #send(to: Socket, bytes: Buffer): Promise<void> {
    if (to.destroyed || to.write(bytes)) return;
    await Promise.race([once(to, "drain"), once(to, "close")]);
  }
}

/** A server tells its clients where else it and its like can be reached: around the proxy. */
function withoutOtherUrls({ raw }: Frame): Buffer {
  const info: Record<string, unknown> = JSON.parse(raw.toString("utf8").slice("INFO".length));
  const { connect_urls: _, ws_connect_urls: __, ...rest } = info;
  return Buffer.from(`INFO ${JSON.stringify(rest)}\r\n`);
}
