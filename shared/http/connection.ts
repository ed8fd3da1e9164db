import { type IncomingMessage, request as overHttp, type RequestOptions } from "node:http";
import { request as overHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { Place } from "./destination.ts";
import { codeOf, GuardedRequestError } from "./errors.ts";

/** A request as it goes over the wire. */
export interface WireRequest {
  readonly method: string;
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
}

interface ExchangeOptions {
  /** PEM text of the authorities that are trusted in place of the usual ones. */
  readonly ca: string | undefined;
  readonly maxHeaderBytes: number;
  readonly signal: AbortSignal;
  /** The connection stands; from now on the other side may see the request. */
  readonly connected: () => void;
}

/**
 * Sends a request over a connection of its own, to one of the addresses that were judged and no other: their name is not
 * resolved again. A connection is not kept, so none is shared between remotes, and none is found dead after
 * Lambda has thawed a sandbox. Node.js's own client without an agent of the process: it knows no proxy of the environment.
 *
 * @returns the answer, of which only the head was read
 * @throws GuardedRequestError `unreachable`, `broken`, `too_large`; the signal's reason
 */
export function exchange(
  place: Place,
  { method, headers, body }: WireRequest,
  options: ExchangeOptions,
): Promise<IncomingMessage> {
  const { url, host } = place;
  const secure = url.protocol === "https:";
  const sending: RequestOptions = {
    protocol: url.protocol,
    host,
    port: url.port === "" ? undefined : url.port,
    path: url.pathname + url.search,
    method,
    // TLS is told the same name (Node.js documentation, https.Agent: servername).
    headers: { host: url.host, ...headers },
    agent: false,
    lookup: pinnedTo(place.addresses),
    maxHeaderSize: options.maxHeaderBytes,
    insecureHTTPParser: false,
    signal: options.signal,
  };
  return new Promise((resolve, reject) => {
    let connected = false;
    const request = secure
      ? overHttps({
          ...sending,
          // Whatever NODE_TLS_REJECT_UNAUTHORIZED says.
          rejectUnauthorized: true,
          ...(options.ca !== undefined && { ca: options.ca }),
        })
      : overHttp(sending);
    request.once("socket", (socket) =>
      socket.once(secure ? "secureConnect" : "connect", () => {
        connected = true;
        options.connected();
      }),
    );
    request.once("response", (answer) => {
      // Whoever reads the body is told; nobody reading must not end the process.
      answer.on("error", () => {});
      resolve(answer);
    });
    // Never `once`: the socket may fail again while the answer is read.
    request.on("error", (error) =>
      reject(options.signal.aborted ? options.signal.reason : failure(place.label, error, connected)),
    );
    // As after an answer that changes the protocol (101), which nobody asked for.
    request.once("close", () => reject(failure(place.label, undefined, connected)));
    request.end(body);
  });
}

/** `net.connect` asks for one address or for all, of which it then tries each (Node.js documentation, net: autoSelectFamily). */
function pinnedTo(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, options, callback) => {
    const [first] = all;
    if (options.all === true) callback(null, all);
    else if (first !== undefined) callback(null, first.address, first.family);
  };
}

function failure(label: string, error: unknown, connected: boolean): GuardedRequestError {
  const code = codeOf(error);
  const details = { sent: connected, ...(code !== undefined && { code }) };
  const called = code ?? "no reason given";
  if (code === "HPE_HEADER_OVERFLOW")
    return new GuardedRequestError("too_large", label, "the head of its answer is over the bound", details);
  return connected
    ? new GuardedRequestError(
        "broken",
        label,
        `the connection was lost, or its answer is not HTTP (${called})`,
        details,
      )
    : new GuardedRequestError("unreachable", label, `there is no connection (${called})`, details);
}
