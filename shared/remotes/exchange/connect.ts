import type { AgentCard } from "@a2a-js/sdk";
import type { Client } from "@a2a-js/sdk/client";
import { correlationHeaders } from "../../http/correlation.ts";
import type { CardInterface, RemoteCard } from "../card.ts";
import { understood } from "../extensions.ts";
import { checkedFetch } from "./checked-fetch.ts";
import { RemoteError } from "./errors.ts";
import type { ExchangeLimits, ExchangeOptions } from "./types.ts";

/** What we speak, what we would rather first; a version of the same major is the same (A2A 1.0 §3.6). */
const SPOKEN = [
  { binding: "JSONRPC", version: /^1\./, protocol: "1.0" },
  { binding: "JSONRPC", version: /^0\./, protocol: "0.3" },
  { binding: "HTTP+JSON", version: /^1\./, protocol: "1.0" },
  { binding: "HTTP+JSON", version: /^0\./, protocol: "0.3" },
] as const;

/** How an agent is spoken to. */
export interface Way {
  readonly binding: string;
  readonly protocol: RemoteCard["protocol"];
  readonly tenant: string;
}

/**
 * The interface of a card that we choose: JSON-RPC before HTTP+JSON, since the operator's URL is that of JSON-RPC where an
 * agent has both, and 1.0 before 0.3. Without a card it is JSON-RPC of 1.0.
 *
 * @throws RemoteError `unsupported` when it has none that we speak
 */
export function wayTo(remote: string, interfaces: readonly CardInterface[] | undefined): Way {
  if (interfaces === undefined) return { binding: "JSONRPC", protocol: "1.0", tenant: "" };
  for (const { binding, version, protocol } of SPOKEN) {
    const found = interfaces.find(
      (of) => of.protocolBinding.toUpperCase() === binding && version.test(of.protocolVersion),
    );
    if (found !== undefined) return { binding, protocol, tenant: found.tenant ?? "" };
  }
  const what = "its card has no interface of JSONRPC or HTTP+JSON in version 1.0 or 0.3";
  throw new RemoteError("unsupported", remote, what, { sent: false });
}

/**
 * The SDK's client of an agent: at the operator's URL, whatever a card says, and over the guarded client. The SDK is
 * loaded here, and only by whoever asks an agent.
 */
export async function connect(
  { remote, fetch }: ExchangeOptions,
  way: Way,
  { sendMs }: ExchangeLimits,
): Promise<Client> {
  const sdk = await import("@a2a-js/sdk/client");
  const options = { fetchImpl: checkedFetch(remote.name, fetch, sendMs), legacyCompat: { enabled: true } };
  const factory = new sdk.ClientFactory({
    transports: [new sdk.JsonRpcTransportFactory(options), new sdk.RestTransportFactory(options)],
    clientConfig: { polling: true },
  });
  return factory.createFromAgentCard(cardFor(remote.name, remote.url, way));
}

/** As much of a card as the SDK goes by. */
function cardFor(name: string, url: string, { binding, protocol, tenant }: Way): AgentCard {
  return {
    name,
    description: "",
    version: "",
    supportedInterfaces: [{ url, protocolBinding: binding, protocolVersion: protocol, tenant }],
    provider: undefined,
    capabilities: { streaming: true, pushNotifications: false, extensions: [] },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [],
    signatures: [],
  };
}

const EXTENSION_HEADERS = ["a2a-extensions", "x-a2a-extensions"];

/**
 * The headers of each request: the operator's, where the work belongs, and which extensions we understand of those that the
 * card has. The SDK adds `A2A-Version`, and calls the extensions as each version does; who we are is the fetch's.
 */
export function headersOf({ remote, facts, trace }: ExchangeOptions): Record<string, string> {
  const own = Object.entries(remote.headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const isExtensions = ([name]: readonly [string, string]) => EXTENSION_HEADERS.includes(name);
  const extensions = [...activated(remote.headers), ...understood(facts?.card.extensions.uris ?? [])];
  return {
    ...Object.fromEntries(own.filter((of) => !isExtensions(of))),
    ...correlationHeaders(trace),
    ...(extensions.length > 0 && { "A2A-Extensions": [...new Set(extensions)].join(", ") }),
  };
}

/** The extensions that the operator has named in the file's headers. */
export function activated(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers)
    .filter(([name]) => EXTENSION_HEADERS.includes(name.toLowerCase()))
    .flatMap(([, value]) => value.split(","))
    .map((uri) => uri.trim())
    .filter((uri) => uri !== "");
}
