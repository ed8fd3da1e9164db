import { connect, createServer, type Socket } from "node:net";
import * as z from "zod";
import { type Frame, FrameReader } from "./proxy/nats-frames.ts";

/** What the clients of one name have done on their connections. */
export interface Seen {
  /** Subjects that were published on. */
  readonly published: Set<string>;
  readonly subscribed: Set<string>;
  /** What the server has refused, in its words. */
  readonly refused: string[];
}

/** A way to a nats-server on which every subject is noted, by the name that the client has given itself. */
export interface NatsWitness {
  readonly url: string;
  readonly seen: ReadonlyMap<string, Seen>;
  stop(): Promise<void>;
}

const connectFrame = z.object({ name: z.string().default("") });

/** @param target the server's URL; without TLS */
export async function startNatsWitness(target: string): Promise<NatsWitness> {
  const { hostname, port } = new URL(target);
  const seen = new Map<string, Seen>();
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const far = connect(Number(port), hostname);
    const note = new Notes(seen);
    watch(client, (frame) => note.fromClient(frame));
    watch(far, (frame) => note.fromServer(frame));
    client.pipe(far).pipe(client);
    for (const socket of [client, far]) {
      sockets.add(socket);
      socket.on("error", () => undefined); // the close that follows says it
      socket.once("close", () => {
        sockets.delete(socket);
        client.destroy();
        far.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    url: `nats://127.0.0.1:${typeof address === "object" ? address?.port : ""}`,
    seen,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function watch(socket: Socket, take: (frame: Frame) => void): void {
  const frames = new FrameReader();
  socket.on("data", (chunk) => {
    for (const frame of frames.push(chunk)) take(frame);
  });
}

/** What is noted of one connection. */
class Notes {
  readonly #seen: Map<string, Seen>;
  #own: Seen = { published: new Set(), subscribed: new Set(), refused: [] };

  constructor(seen: Map<string, Seen>) {
    this.#seen = seen;
  }

  fromClient({ op, args }: Frame): void {
    const [subject = ""] = args;
    if (op === "CONNECT") {
      const { name } = connectFrame.parse(JSON.parse(args.join(" ")));
      this.#own = this.#seen.get(name) ?? this.#own;
      this.#seen.set(name, this.#own);
    } else if (op === "PUB" || op === "HPUB") this.#own.published.add(subject);
    else if (op === "SUB") this.#own.subscribed.add(subject);
  }

  fromServer({ op, args }: Frame): void {
    if (op === "-ERR") this.#own.refused.push(args.join(" "));
  }
}
