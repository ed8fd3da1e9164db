import { isDeepStrictEqual } from "node:util";

/**
 * Which members of a card are signed (A2A 1.0 §8.4.1, §5.7): those that are required, and those that are `optional` and
 * there, whatever their value; of all others those whose value is not the default. Members that A2A 1.0 does not know
 * stay, so that nobody can add one to a signed card.
 */

/** What a member with members of its own is: one, a list of them, or several by name. */
type Kind = Message | { readonly list: Message } | { readonly map: Message };

/** A message of A2A 1.0: which of its members are left out when empty, and which have members of their own. */
interface Message {
  /** Neither required nor `optional`: left out at their default. */
  readonly implicit?: readonly string[];
  readonly members?: Readonly<Record<string, Kind>>;
}

const requirement: Message = { implicit: ["schemes"], members: { schemes: { map: { implicit: ["list"] } } } };
const flow: Message = { implicit: ["refreshUrl", "pkceRequired"] };
const oauth2: Message = {
  implicit: ["description", "oauth2MetadataUrl"],
  members: {
    flows: {
      members: {
        authorizationCode: flow,
        clientCredentials: flow,
        implicit: flow,
        password: flow,
        deviceCode: flow,
      },
    },
  },
};
const scheme: Message = {
  members: {
    apiKeySecurityScheme: { implicit: ["description"] },
    httpAuthSecurityScheme: { implicit: ["description", "bearerFormat"] },
    oauth2SecurityScheme: oauth2,
    openIdConnectSecurityScheme: { implicit: ["description"] },
    mtlsSecurityScheme: { implicit: ["description"] },
  },
};
const extension: Message = { implicit: ["uri", "description", "required"] };
const skill: Message = {
  implicit: ["examples", "inputModes", "outputModes", "securityRequirements"],
  members: { securityRequirements: { list: requirement } },
};
/** A2A 1.0 §4.4.1, as its proto has it. */
const card: Message = {
  implicit: ["securitySchemes", "securityRequirements"],
  members: {
    supportedInterfaces: { list: { implicit: ["tenant"] } },
    provider: {},
    capabilities: { implicit: ["extensions"], members: { extensions: { list: extension } } },
    securitySchemes: { map: scheme },
    securityRequirements: { list: requirement },
    skills: { list: skill },
  },
};

/** A value's members, in JSON. */
export type Members = Readonly<Record<string, unknown>>;

/** A card without its signatures, with exactly the members that a signature covers. */
export function signedPart({ signatures: _, ...rest }: Members): Members {
  return presentIn(rest, card);
}

/**
 * The same without anything empty, at any depth: what the SDKs of A2A sign, although required members are to stay
 * (A2A 1.0 §8.4.1). Of a card in which nothing is empty both are the same.
 */
export function withoutEmpties(value: Members): Members {
  const kept = cleaned(value);
  return isMembers(kept) ? kept : {};
}

/** The members that A2A 0.3 had at the top, and where 1.0 has the same. */
const MIRRORS: Readonly<Record<string, (card: Members) => unknown>> = {
  url: (of) => first(of).url,
  preferredTransport: (of) => first(of).protocolBinding,
  protocolVersion: (of) => first(of).protocolVersion,
  supportsAuthenticatedExtendedCard: (of) => membersOf(of.capabilities).extendedAgentCard,
  additionalInterfaces: (of) =>
    listOf(of.supportedInterfaces)
      .slice(1)
      .map((each) => ({ url: membersOf(each).url, transport: membersOf(each).protocolBinding })),
};

/**
 * A card without what servers that speak A2A 0.3 as well add to it after it was signed, as far as that repeats what the
 * signed members say. Whatever says something else stays, and breaks the signature.
 */
export function withoutMirrors(of: Members): Members {
  const kept = Object.entries(of).filter(([name, value]) => {
    const mirrored = Object.hasOwn(MIRRORS, name) ? MIRRORS[name]?.(of) : undefined;
    return mirrored === undefined || !isDeepStrictEqual(value, mirrored);
  });
  return Object.fromEntries(kept);
}

export function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function membersOf(value: unknown): Members {
  return isMembers(value) ? value : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function first(of: Members): Members {
  return membersOf(listOf(of.supportedInterfaces)[0]);
}

function presentIn(value: Members, { implicit = [], members = {} }: Message): Members {
  const present = Object.entries(value).flatMap(([name, raw]) => {
    // JSON of protocol buffers says null for a member that is not set (ProtoJSON).
    if (raw === null) return [];
    const kind = Object.hasOwn(members, name) ? members[name] : undefined;
    const kept = kind === undefined ? raw : presentOf(raw, kind);
    return implicit.includes(name) && isDefault(kept) ? [] : [[name, kept] as const];
  });
  return Object.fromEntries(present);
}

/** Of another kind than expected it is no card of A2A 1.0, and is taken as it is. */
function presentOf(value: unknown, kind: Kind): unknown {
  if ("list" in kind)
    return Array.isArray(value) ? value.map((of: unknown) => presentOf(of, kind.list)) : value;
  if (!isMembers(value)) return value;
  if (!("map" in kind)) return presentIn(value, kind);
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, presentOf(of, kind.map)]));
}

function isDefault(value: unknown): boolean {
  return value === "" || value === false || value === 0 || isEmpty(value);
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isMembers(value) && Object.keys(value).length === 0;
}

function cleaned(value: unknown): unknown {
  if (value === "" || value === null) return undefined;
  if (typeof value !== "object") return value;
  const inner = Array.isArray(value)
    ? value.map(cleaned).filter((of) => of !== undefined)
    : Object.fromEntries(
        Object.entries(value).flatMap(([name, of]) => {
          const kept = cleaned(of);
          return kept === undefined ? [] : [[name, kept]];
        }),
      );
  return isEmpty(inner) ? undefined : inner;
}
