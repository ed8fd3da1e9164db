import { jsonDepth, readJson } from "../wire/json.ts";
import { failed, optional, type Reading } from "../wire/reading.ts";
import * as z from "../zod.ts";
import { type CardExtensions, readExtensions } from "./extensions.ts";
import { readSchemes, type SecurityScheme } from "./security.ts";

/** Bytes of a card, with its signatures. */
export const MAX_CARD_BYTES = 262_144;
export const MAX_CARD_SKILLS = 256;
export const MAX_CARD_INTERFACES = 16;
export const MAX_CARD_EXTENSIONS = 64;
/** Characters of a description, of a card or of a skill. */
export const MAX_DESCRIPTION = 8_192;
/** Nesting of a card: deeper is nothing that anybody declares. */
export const MAX_CARD_DEPTH = 32;

/** A skill as a card has it (A2A 1.0 §4.4.5). */
export interface CardSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
}

/** How an agent is spoken to (A2A 1.0 §4.4.6), at the address that the operator has given. */
export interface CardInterface {
  readonly url: string;
  readonly protocolBinding: string;
  /** `Major.Minor` (A2A 1.0 §3.6.1). */
  readonly protocolVersion: string;
  readonly tenant?: string | undefined;
}

/** The card of an A2A agent, of either version, as far as we use it. */
export interface RemoteCard {
  readonly protocol: "0.3" | "1.0";
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly skills: readonly CardSkill[];
  /** The first is the agent's own choice. */
  readonly interfaces: readonly CardInterface[];
  readonly capabilities: {
    readonly streaming: boolean;
    readonly pushNotifications: boolean;
    readonly extendedAgentCard: boolean;
  };
  readonly extensions: CardExtensions;
  readonly securitySchemes: readonly SecurityScheme[];
}

/** A card as it was read. */
export interface ReadCard {
  readonly card: RemoteCard;
  /** The whole as JSON, its signatures included: what these are of is more than what we read. */
  readonly value: unknown;
  /** What of it was left out, and why. */
  readonly notes: readonly string[];
}

const upTo = (most: number) => z.string().check(z.maxLength(most));
const some = (most: number) => upTo(most).check(z.minLength(1));
/** Members that are required, but left out by ProtoJSON when they are empty. */
const orEmpty = (most: number) => withDefault(upTo(most), "");
const flag = () => withDefault(z.boolean(), false);
const listOf = <T>(schema: z.ZodMiniType<T>, most: number) =>
  withDefault(z.array(schema).check(z.maxLength(most)), []);

/** `null` and nothing mean the default (ProtoJSON). */
function withDefault<T>(schema: z.ZodMiniType<T>, fallback: NoInfer<T>): z.ZodMiniType<T> {
  return z.pipe(
    optional(schema),
    z.transform((value) => value ?? fallback),
  );
}

const skillId = () =>
  some(128).check(
    z.refine((id) => !/\p{C}/u.test(id), "expected no control characters"),
    z.refine((id) => id.trim() === id, "expected no spaces around it"),
  );

const schemas = z.whenUsed(() => {
  const extension = camel(z.object({ uri: some(512), required: flag(), params: z.optional(z.unknown()) }));
  const common = {
    name: some(256),
    description: orEmpty(MAX_DESCRIPTION),
    version: orEmpty(128),
    skills: listOf(
      camel(
        z.object({
          id: skillId(),
          name: orEmpty(256),
          description: orEmpty(MAX_DESCRIPTION),
          tags: listOf(upTo(128), 64),
        }),
      ),
      MAX_CARD_SKILLS,
    ),
    capabilities: withDefault(
      camel(
        z.object({
          streaming: flag(),
          pushNotifications: flag(),
          extendedAgentCard: flag(),
          extensions: listOf(extension, MAX_CARD_EXTENSIONS),
        }),
      ),
      { streaming: false, pushNotifications: false, extendedAgentCard: false, extensions: [] },
    ),
    securitySchemes: z.optional(z.unknown()),
  };
  const agentInterface = camel(
    z.object({
      url: upTo(2_048),
      protocolBinding: some(128),
      protocolVersion: withDefault(some(32), "1.0"),
      tenant: optional(upTo(256)),
    }),
  );
  const other = z.object({ url: upTo(2_048), transport: some(128) });
  return {
    current: z.object({
      ...common,
      supportedInterfaces: z.array(agentInterface).check(z.minLength(1), z.maxLength(MAX_CARD_INTERFACES)),
    }),
    /** A2A 0.3.0 §5.5. */
    legacy: z.object({
      ...common,
      url: some(2_048),
      protocolVersion: withDefault(some(32), "0.3.0"),
      preferredTransport: withDefault(some(128), "JSONRPC"),
      additionalInterfaces: listOf(other, MAX_CARD_INTERFACES - 1),
      supportsAuthenticatedExtendedCard: flag(),
    }),
  };
});

/** ProtoJSON's readers take the names of the proto as well, such as `supported_interfaces`. */
function camel<T>(schema: z.ZodMiniType<T>): z.ZodMiniType<T> {
  return z.pipe(z.transform(camelKeys), schema);
}

function camelKeys(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value);
  const named = members.map(([key, of]) => [
    key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()),
    of,
  ]);
  return Object.fromEntries([...named, ...members]);
}

/**
 * Reads a card of A2A 1.0 or 0.3; one that is both counts as 1.0.
 *
 * @param body as it came
 * @param url where the operator says that the agent is: every interface is pinned to it, for of a card no address is
 *   trusted, only the choice of transports
 * @returns the card, or why it is none; reasons name the field, and quote nothing of the card
 */
export function readCard(body: Uint8Array, url: string): Reading<ReadCard> {
  if (body.byteLength > MAX_CARD_BYTES) return failed(`card: expected at most ${MAX_CARD_BYTES} bytes`);
  const json = readJson(body);
  if (!json.ok) return failed(json.reason.replace("body", "card"));
  const { text, value } = json.value;
  if (jsonDepth(text) > MAX_CARD_DEPTH)
    return failed(`card: expected JSON nested at most ${MAX_CARD_DEPTH} deep`);
  const members = camelKeys(value);
  if (typeof members !== "object" || members === null || Array.isArray(members))
    return failed("card: expected an object");
  const isLegacy = !("supportedInterfaces" in members) && "url" in members;
  const read = isLegacy ? readLegacy(members) : readCurrent(members);
  return read.ok ? { ok: true, value: { ...pinned(read.value, url), value } } : read;
}

type Current = z.infer<ReturnType<typeof schemas>["current"]>;
/** A card of either version in the words of 1.0. */
interface Found extends Current {
  readonly protocol: RemoteCard["protocol"];
}

function readCurrent(members: object): Reading<Found> {
  const parsed = schemas().current.safeParse(members);
  return parsed.success
    ? { ok: true, value: { ...parsed.data, protocol: "1.0" } }
    : failed(reasonOf(parsed.error));
}

function readLegacy(members: object): Reading<Found> {
  const parsed = schemas().legacy.safeParse(members);
  if (!parsed.success) return failed(reasonOf(parsed.error));
  const { capabilities, preferredTransport, additionalInterfaces, ...rest } = parsed.data;
  const asked = { url: rest.url, transport: preferredTransport };
  return {
    ok: true,
    value: {
      ...rest,
      protocol: "0.3",
      capabilities: { ...capabilities, extendedAgentCard: rest.supportsAuthenticatedExtendedCard },
      supportedInterfaces: [asked, ...additionalInterfaces].map((of) => ({
        url: of.url,
        protocolBinding: of.transport,
        protocolVersion: rest.protocolVersion,
        tenant: undefined,
      })),
    },
  };
}

function reasonOf({ issues }: z.core.$ZodError): string {
  const [issue] = issues;
  const field = ["card", ...(issue?.path ?? []).map(String)].join(".");
  return `${field}: ${issue?.message.replace("Invalid input: ", "") ?? "does not fit"}`;
}

function pinned(found: Found, url: string): Pick<ReadCard, "card" | "notes"> {
  const { streaming, pushNotifications, extendedAgentCard } = found.capabilities;
  const { extensions, notes } = readExtensions(found.capabilities.extensions);
  const skills = new Map(found.skills.toReversed().map((of) => [of.id, { ...of, name: of.name || of.id }]));
  const repeated = found.skills.length - skills.size;
  const interfaces = found.supportedInterfaces.map(({ protocolBinding, protocolVersion, tenant }) => ({
    url,
    protocolBinding,
    protocolVersion: majorMinor(protocolVersion),
    ...(tenant && { tenant }),
  }));
  const card = {
    protocol: found.protocol,
    name: found.name,
    description: found.description,
    version: found.version,
    skills: [...skills.values()].toReversed(),
    interfaces: [
      ...new Map(interfaces.toReversed().map((of) => [JSON.stringify(of), of])).values(),
    ].toReversed(),
    capabilities: { streaming, pushNotifications, extendedAgentCard },
    extensions,
    securitySchemes: readSchemes(found.securitySchemes),
  };
  const told =
    repeated > 0 ? [...notes, "skills: an id that is told twice counts as it is told first"] : notes;
  return { card, notes: told };
}

/** The part of a version that is negotiated by (A2A 1.0 §3.6.1): `1.0` of `1.0.1`. */
function majorMinor(version: string): string {
  return /^\d+\.\d+/.exec(version)?.[0] ?? version;
}
