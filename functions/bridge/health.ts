import { once } from "node:events";
import { createServer, type Server } from "node:http";

/**
 * Answers whoever asks on this machine whether all is well: 204, or 503. A container's health command asks it.
 *
 * @param port 0 for any
 */
export async function healthServer(port: number, healthy: () => boolean): Promise<Server> {
  const server = createServer((_request, response) => {
    response.writeHead(healthy() ? 204 : 503).end();
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return server;
}
