import { blankedIn, agentId as validId } from "../wire/ids.ts";
import { readJson } from "../wire/json.ts";
import { failed, given, optional, optionalText, type Reading } from "../wire/reading.ts";
import { NS_PER_MS, parseTime } from "../wire/time.ts";
import * as z from "../zod.ts";
import { MAX_RECORD_BYTES } from "./bucket-facts.ts";
import { EXTENDED_TEXTS, type ExtendedFacts, type NatsFacts } from "./peer-facts.ts";

/** How long a record holds that does not say. */
const HOLDS_MS = 90_000;

/** An agent's record as it was read: what it says, and until when it holds, in milliseconds since 1970. */
export interface ReadRecord {
  readonly facts: Omit<NatsFacts, "firstSeen">;
  readonly expiresAt: number;
}

/** `text/plain; charset=utf-8` and the like (RFC 2045 §5.1). */
const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+\s*(;\s*[\w!#$&^.+-]+=([\w!#$&^.+-]+|"[^"]*")\s*)*;?$/;
const SKILL_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\/[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const CHANNEL_REF = /^([A-Za-z0-9][A-Za-z0-9_-]{0,63})?$/;
/** An id of Discord's; anything else is as good as none. */
const DISCORD_ID = /^\d{17,20}$/;

const list = <T>(schema: z.ZodMiniType<T>) =>
  z.pipe(
    optional(z.array(schema)),
    z.transform((of): T[] => of ?? []),
  );

const record = z.whenUsed(() => {
  const text = z.pipe(
    optionalText(),
    z.transform((of) => of ?? ""),
  );
  const filled = z.string().check(z.refine((of) => of.trim() !== "", "expected a text that is not blank"));
  const mode = z.string().check(z.regex(MEDIA_TYPE, "expected a media type"));
  const time = optional(
    z.pipe(
      z.string(),
      z.transform((of, context) => {
        const at = parseTime(of);
        if (at !== null) return Number(at / NS_PER_MS);
        context.issues.push({ code: "custom", input: of, message: "expected a time as RFC 3339 has it" });
        return z.NEVER;
      }),
    ),
  );
  return z.object({
    agentId: optionalText(),
    instanceId: text,
    card: z.object({
      name: optionalText(),
      description: text,
      version: filled,
      supportedInterfaces: z
        .array(z.object({ url: text, protocolBinding: filled, protocolVersion: filled }))
        .check(z.minLength(1, "expected at least one interface")),
      // What is true or false, and nothing else: other readers of the record fail on an extension here.
      capabilities: optional(z.record(z.string(), z.boolean("expected true or false"))),
      defaultInputModes: list(mode),
      defaultOutputModes: list(mode),
      skills: list(
        z.object({
          id: z.string().check(z.regex(SKILL_ID, "expected ref/slug")),
          name: text,
          description: text,
          tags: list(z.string()),
          inputModes: list(mode),
          outputModes: list(mode),
        }),
      ),
    }),
    extendedCard: optional(
      z.object({
        ...Object.fromEntries(EXTENDED_TEXTS.map((name) => [name, optionalText()])),
        channel_ref: z.pipe(text, z.string().check(z.regex(CHANNEL_REF, "expected a slug"))),
        result_visibility_support: optional(z.array(z.string())),
      }),
    ),
    expiresAt: time,
    publishedAt: time,
    version: text,
  });
});

/**
 * Reads a record of the bucket of cards by the rules that every reader goes by (docs/remotes.md, records): what breaks one
 * is no record, for other readers stop at it, and an operator wants to know which it is.
 *
 * @param key under which it lies
 * @param at when it was put, in milliseconds since 1970
 * @returns the record, or why it is none; reasons name the field, and quote nothing of the record
 */
export function readPeerRecord(key: string, bytes: Uint8Array, at: number): Reading<ReadRecord> {
  if (bytes.byteLength > MAX_RECORD_BYTES)
    return failed(`record: expected at most ${MAX_RECORD_BYTES} bytes`);
  const json = readJson(bytes);
  if (!json.ok) return failed(json.reason.replace("body", "record"));
  const parsed = record().safeParse(json.value.value);
  if (!parsed.success) return failed(reasonOf(parsed.error));
  const { card, extendedCard, instanceId, expiresAt, publishedAt } = parsed.data;
  const agentId = parsed.data.agentId ?? card.name;
  if (agentId !== key) return failed("record.agentId: expected the key under which the record lies");
  if ((card.name ?? agentId) !== agentId) return failed("record.card.name: expected the agentId");
  if (!validId().safeParse(agentId).success || blankedIn(agentId) !== undefined)
    return failed("record.agentId: expected an id that every peer takes");
  return {
    ok: true,
    value: {
      facts: {
        transport: "nats",
        id: agentId,
        instanceId,
        description: card.description,
        version: card.version,
        skills: card.skills.map(({ id, name, description, tags }) => ({ id, name, description, tags })),
        interfaces: card.supportedInterfaces,
        capabilities: Object.keys(card.capabilities ?? {}).filter((name) => card.capabilities?.[name]),
        extended: extendedOf(extendedCard ?? {}),
      },
      expiresAt: expiresAt ?? (publishedAt ?? at) + HOLDS_MS,
    },
  };
}

function extendedOf(of: ExtendedFacts): ExtendedFacts {
  const discord = (id: string | undefined) => (id !== undefined && DISCORD_ID.test(id) ? id : undefined);
  return given({
    ...of,
    channel_ref: of.channel_ref || undefined,
    discord_guild_id: discord(of.discord_guild_id),
    discord_channel_id: discord(of.discord_channel_id),
    discord_thread_id: discord(of.discord_thread_id),
  });
}

/** The first field that does not fit. The name of a capability is the record's own, and so is left out. */
function reasonOf({ issues }: z.core.$ZodError): string {
  const [issue] = issues;
  const path = (issue?.path ?? []).map(String);
  const at = path.indexOf("capabilities");
  const field = ["record", ...(at < 0 ? path : path.slice(0, at + 1))].join(".");
  return `${field}: ${issue?.message.replace("Invalid input: ", "") ?? "does not fit"}`;
}
