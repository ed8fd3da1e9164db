import type { SendRequest } from "../../shared/remotes/request.ts";

export const URL_OF = "https://auditor.example.com/a2a";
export const BASE = "https://auditor.example.com";
export const CURRENT = `${BASE}/.well-known/agent-card.json`;
export const LEGACY = `${BASE}/.well-known/agent.json`;

export const encoded = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

/** A card of A2A 1.0, with whatever is to be otherwise. */
export function currentCard(over: object = {}) {
  return {
    name: "Auditor",
    description: "Audits",
    version: "2.1.0",
    supportedInterfaces: [
      { url: "http://127.0.0.1:9/a2a", protocolBinding: "JSONRPC", protocolVersion: "1.0.1", tenant: "" },
      { url: "http://169.254.169.254/rest", protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
    ],
    capabilities: { streaming: true, pushNotifications: false },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [{ id: "audit", name: "Audit", description: "Audits it", tags: ["a"] }],
    ...over,
  };
}

/** A card of A2A 0.3. */
export function legacyCard(over: object = {}) {
  return {
    protocolVersion: "0.3.0",
    name: "Auditor",
    description: "Audits",
    version: "1",
    url: "http://10.0.0.1/a2a",
    preferredTransport: "JSONRPC",
    additionalInterfaces: [
      { url: "http://10.0.0.1/a2a", transport: "JSONRPC" },
      { url: "http://10.0.0.1/v1", transport: "HTTP+JSON" },
    ],
    capabilities: { streaming: false, stateTransitionHistory: true },
    supportsAuthenticatedExtendedCard: true,
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [{ id: "audit", name: "Audit", description: "Audits it", tags: [] }],
    ...over,
  };
}

/** What a server answers to each URL. */
export type Answers = Readonly<
  Record<string, (headers: Record<string, string>) => Response | Promise<Response>>
>;

/** A server, and what it was asked. */
export function server(answers: Answers) {
  const asked: { url: string; headers: Record<string, string> }[] = [];
  const send: SendRequest = async (url, { headers }) => {
    asked.push({ url, headers });
    const answer = answers[url];
    if (answer === undefined) return new Response("not here", { status: 404 });
    return answer(headers);
  };
  return { send, asked };
}

export const json =
  (value: unknown, headers: Record<string, string> = {}) =>
  () =>
    new Response(JSON.stringify(value), { headers: { "content-type": "application/json", ...headers } });
