import { createServer } from "node:net";
import { HostError } from "./errors.ts";

const LOOPBACK = "127.0.0.1";

/** A port that nobody uses at this moment. */
export function freePort(): Promise<number> {
  return listenOnce(0);
}

/**
 * Makes sure that a port can be listened on.
 *
 * @param use what the port is for, and `advice` what to do when it is taken
 * @throws HostError `port_taken`
 */
export async function requireFreePort(port: number, use: string, advice: string): Promise<void> {
  try {
    await listenOnce(port);
  } catch (error) {
    throw new HostError("port_taken", `port ${port} (${use}) is taken by another process; ${advice}`, {
      cause: error,
    });
  }
}

function listenOnce(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, LOOPBACK, () => {
      const address = server.address();
      const found = typeof address === "object" && address !== null ? address.port : port;
      server.close(() => resolve(found));
    });
  });
}
