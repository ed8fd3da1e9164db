import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Socket } from "node:net";
import {
  type ConnectionOptions,
  NatsConnectionImpl,
  type NodeConnectionOptions,
  setTransportFactory,
} from "@nats-io/transport-node";
import { NodeTransport, nodeResolveHost } from "@nats-io/transport-node/lib/node_transport.js";

/**
 * The client's own, but for what becomes of a socket whose server has not greeted: the client gives up waiting and leaves it
 * open, so that each attempt costs one more and a process that has nothing else to do never ends.
 */
class Transport extends NodeTransport {
  #socket: Socket | undefined;

  /** Keeps the socket from its beginning: the client knows of it once there is a connection, which may take minutes. */
  override dial(to: Parameters<NodeTransport["dial"]>[0]): Promise<Socket> {
    const keep = (message: unknown) => {
      if (isOfSocket(message)) this.#socket = message.socket;
    };
    // Node.js: Diagnostics Channel, net.client.socket; the socket is made before `dial` returns.
    subscribe("net.client.socket", keep);
    try {
      return super.dial(to);
    } finally {
      unsubscribe("net.client.socket", keep);
    }
  }

  override async close(error?: Error): Promise<void> {
    if (!this.connected) {
      this.discard();
      this.#socket?.destroy();
    }
    await super.close(error);
  }
}

function isOfSocket(message: unknown): message is { readonly socket: Socket } {
  return (
    typeof message === "object" && message !== null && "socket" in message && message.socket instanceof Socket
  );
}

/** Connects as the client's own `connect` does, and leaves nothing open where it does not succeed. */
export function connect(options: NodeConnectionOptions & ConnectionOptions) {
  setTransportFactory({ factory: () => new Transport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}
