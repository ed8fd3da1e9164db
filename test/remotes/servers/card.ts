import type { KeyObject } from "node:crypto";
import { AgentCard, generateAgentCardSignature } from "@a2a-js/sdk";

/** What a server's card says; what is not given is as in {@link DEFAULTS}. */
export interface CardOptions {
  readonly name?: string;
  readonly description?: string;
  readonly version?: string;
  readonly skills?: readonly (string | { readonly id: string; readonly [more: string]: unknown })[];
  /** As they stand on a card: `{ uri, required?, params? }`. */
  readonly extensions?: readonly object[];
  readonly streaming?: boolean;
  readonly pushNotifications?: boolean;
  /** Who signs it (EdDSA for an Ed25519 key, else ES256), and what the key is called; nobody, if it is not given. */
  readonly signer?: { readonly key: KeyObject; readonly kid: string };
  /** Whatever else the card has, or has otherwise. */
  readonly over?: object;
}

const BASE = "https://proto-labs.ai/a2a/ext/";

/** The extension that says who must agree before a skill acts: `hitl({ deploy: { mode: "gated" } })`. */
export function hitl(skills: Readonly<Record<string, object>>) {
  return { uri: `${BASE}hitl-mode-v1`, params: { skills } };
}

/** The extension that says how far a skill reaches: `blast({ deploy: { radius: "public" } })`. */
export function blast(skills: Readonly<Record<string, object>>) {
  return { uri: `${BASE}blast-v1`, params: { skills } };
}

/** An extension without parameters: `cost-v1`, `confidence-v1`, `tool-call-v1`, `worldstate-delta-v1`, `trace-v1`. */
export function extension(name: string, required = false) {
  return { uri: `${BASE}${name}`, required };
}

function skillOf(of: string | { readonly id: string }) {
  const { id, ...more } = typeof of === "string" ? { id: of } : of;
  return { id, name: id, description: `Does ${id}`, tags: ["test"], ...more };
}

/** A card of A2A 1.0, as JSON. Its address is a lie, as it is of agents in containers. */
export async function currentCard(options: CardOptions): Promise<object> {
  const { signer, over } = options;
  const card = {
    ...common(options),
    supportedInterfaces: [
      { url: "http://127.0.0.1:9/elsewhere", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    ],
    ...over,
  };
  if (signer === undefined) return card;
  const alg = signer.key.asymmetricKeyType === "ed25519" ? "EdDSA" : "ES256";
  const sign = generateAgentCardSignature(signer.key, { alg, typ: "JOSE", kid: signer.kid });
  const { signatures } = await sign(AgentCard.fromJSON(card));
  return {
    ...card,
    signatures: signatures.map(({ protected: header, signature }) => ({ protected: header, signature })),
  };
}

/** A card of A2A 0.3, as JSON. */
export function legacyCard(options: CardOptions): object {
  return {
    ...common(options),
    protocolVersion: "0.3.0",
    url: "http://127.0.0.1:9/elsewhere",
    preferredTransport: "JSONRPC",
    ...options.over,
  };
}

function common(options: CardOptions) {
  const {
    name = "Scripted",
    description = "Does what it is told",
    version = "1.0.0",
    skills = ["script"],
    extensions = [],
    streaming = true,
    pushNotifications = false,
  } = options;
  return {
    name,
    description,
    version,
    capabilities: { streaming, pushNotifications, extensions },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: skills.map(skillOf),
  };
}
