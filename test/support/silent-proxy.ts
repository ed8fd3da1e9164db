import { connect, createServer, type Socket } from "node:net";

/** A way to a server on which connections can die as they do behind a NAT that has forgotten them: without a word. */
export interface SilentProxy {
  /** The server's URL, but through here. */
  readonly url: string;
  /** How many connections have been made so far. */
  readonly made: number;
  /** How many of them their client has not closed. */
  readonly open: number;
  /** From now on nothing passes on the connections that there are; new ones are as good as ever. */
  silence(): void;
  stop(): Promise<void>;
}

/** @param target the server's URL, with a port */
export async function startSilentProxy(target: string): Promise<SilentProxy> {
  const { protocol, hostname, port } = new URL(target);
  const pairs = new Set<readonly [Socket, Socket]>();
  let made = 0;
  const server = createServer((client) => {
    made++;
    const pair = [client, connect(Number(port), hostname)] as const;
    pairs.add(pair);
    const [, far] = pair;
    for (const socket of pair) socket.on("error", () => undefined); // the close that follows says it
    client.pipe(far).pipe(client);
    client.once("close", () => {
      pairs.delete(pair);
      far.destroy();
    });
    far.once("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    url: `${protocol}//127.0.0.1:${typeof address === "object" ? address?.port : ""}`,
    get made() {
      return made;
    },
    get open() {
      return pairs.size;
    },
    silence() {
      for (const [client, far] of pairs) {
        client.unpipe(far);
        far.unpipe(client);
        // What comes is taken and lost, so that a client's end is still seen here.
        client.resume();
        far.resume();
      }
    },
    async stop() {
      for (const [client, far] of pairs) for (const socket of [client, far]) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
