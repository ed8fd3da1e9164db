import { agentId } from "../wire/ids.ts";
import { parseTime } from "../wire/time.ts";
import * as z from "../zod.ts";
import { MAX_RECORD_BYTES } from "./bucket-facts.ts";
import { isClean, sanitized } from "./sanitize.ts";

/**
 * Whether readers take a record, by the rules of docs/cards.md alone: what builds ours (record.ts) has no part in it. The
 * first record that a reader cannot take keeps some from all behind it, so none is put that fails here.
 */

const MIME = /^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+(\s*;\s*[a-z0-9!#$&^_.+-]+=("[^"\\]*"|[^\s;"]+))*$/i;
const SLUG = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const SKILL_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\/[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

const schema = z.whenUsed(() => {
  const that = (holds: (text: string) => boolean, expected: string) =>
    z.string("expected a text").check(z.refine(holds, `expected ${expected}`));
  const text = z.nullish(z.string("expected a text"));
  const filled = that((of) => of.trim() !== "", "a text that is not blank");
  const open = filled.check(z.refine(isClean, "expected a text of which peers blank nothing"));
  const time = z.nullish(that((of) => parseTime(of) !== null, "an RFC 3339 time"));
  const modes = z.nullish(z.array(that((of) => MIME.test(of), "a media type")));
  const texts = z.nullish(z.array(z.string("expected a text")));
  return z.looseObject({
    agentId: that((of) => agentId().safeParse(of).success, "an agent id"),
    instanceId: text,
    card: z.looseObject({
      name: z.string("expected a text"),
      description: text,
      version: filled,
      supportedInterfaces: z
        .array(
          z.looseObject({
            url: z.nullish(that(isClean, "a URL of which peers blank nothing")),
            protocolBinding: open,
            protocolVersion: open,
          }),
        )
        .check(z.minLength(1, "expected at least one")),
      capabilities: z.nullish(z.record(z.string(), z.boolean("expected true or false"))),
      defaultInputModes: modes,
      defaultOutputModes: modes,
      skills: z.nullish(
        z.array(
          z.looseObject({
            id: that((of) => SKILL_ID.test(of), "a channelRef, / and a slug"),
            name: text,
            description: text,
            tags: texts,
            inputModes: modes,
            outputModes: modes,
          }),
        ),
      ),
    }),
    extendedCard: z.nullish(
      z.looseObject({
        channel_ref: z.nullish(that((of) => of === "" || SLUG.test(of), "a slug")),
        runtime: text,
        bot_agent_id: text,
        display_name: text,
        discord_guild_id: text,
        discord_channel_id: text,
        discord_thread_id: text,
        trigger_guidance: text,
        result_visibility_support: texts,
        max_task_duration_class: text,
        credential_issuer: text,
        credential_fingerprint: text,
        public_key_fingerprint: text,
        signature_status: text,
      }),
    ),
    expiresAt: time,
    publishedAt: time,
    version: text,
  });
});

/**
 * What is wrong with a record, each fault as `field: what was expected`; nothing of one that every reader takes.
 *
 * @param key under which it lies, or is to lie, in the bucket
 * @param bytes as they lie there
 */
export function recordFaults(key: string, bytes: Uint8Array): string[] {
  const tooLong =
    bytes.byteLength > MAX_RECORD_BYTES
      ? [`record: expected at most ${MAX_RECORD_BYTES} bytes, got ${bytes.byteLength}`]
      : [];
  const json = parsed(bytes);
  if (json === undefined) return [...tooLong, "record: expected JSON in UTF-8"];
  const { data, error } = z.safeParse(schema(), json.value);
  if (error !== undefined)
    return [...tooLong, ...error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`)];
  const { agentId: id, card } = data;
  return [
    ...tooLong,
    ...(id === key ? [] : [`agentId: expected ${key}, the record's key`]),
    ...(sanitized(card.name) === id ? [] : ["card.name: expected the agentId, of which peers blank nothing"]),
  ];
}

function parsed(bytes: Uint8Array): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) };
  } catch {
    return undefined;
  }
}
