import * as z from "../zod.ts";
import { given } from "./reading.ts";

interface PartFields {
  readonly mediaType?: string;
  readonly filename?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** A piece of a message: exactly one of a text, any JSON value, bytes in base64, or where they are. */
export type Part =
  | (PartFields & { readonly text: string })
  | (PartFields & { readonly data: unknown })
  | (PartFields & { readonly raw: string })
  | (PartFields & { readonly url: string });

/** A peer's message in the one shape that handlers see (A2A 1.0 §4.1.4). */
export interface Message {
  readonly parts: readonly Part[];
  readonly messageId?: string;
  readonly role?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

const MEMBERS = ["text", "raw", "url", "data"] as const;

const forms = z.whenUsed(() => {
  /** What says something about a part or a message is left out when it has not the form it should have. */
  const note = z.orElse(z.string(), undefined);
  const metadata = z.orElse(z.record(z.string(), z.unknown()), undefined);
  const fields = { mediaType: note, filename: note, metadata };
  const message = z.object({ parts: z.array(z.unknown()), messageId: note, role: note, metadata });
  return {
    message,
    wrapped: z.object({ message }),
    /** Parts of A2A 1.0, told apart by their member. */
    ofMember: {
      text: z.object({ text: z.string(), ...fields }),
      raw: z.object({ raw: z.string(), ...fields }),
      url: z.object({ url: z.string(), ...fields }),
      data: z.object({ data: z.unknown(), ...fields }),
    },
    /** Parts of A2A 0.3, told apart by `kind`. */
    ofKind: z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("text"), text: z.string(), metadata }),
      z.object({ kind: z.literal("data"), data: z.unknown(), metadata }),
      z.object({
        kind: z.literal("file"),
        file: z.union([
          z.object({ bytes: z.string(), name: note, mimeType: note }),
          z.object({ uri: z.string(), name: note, mimeType: note }),
        ]),
        metadata,
      }),
    ]),
  };
});

/**
 * Brings a task's `a2a` into one shape: a bare string, one part of A2A 0.3, `{parts}` and `{message: {parts}}` with
 * parts of A2A 0.3 or 1.0. Anything else is one data part: no message is refused for its form (docs/wire.md §6).
 */
export function readMessage(a2a: unknown): Message {
  if (typeof a2a === "string") return { parts: [{ text: a2a }] };
  const message = forms().wrapped.safeParse(a2a).data?.message ?? forms().message.safeParse(a2a).data;
  if (message !== undefined) {
    const { parts, ...rest } = message;
    return { parts: parts.map(readPart), ...given(rest) };
  }
  return { parts: [ofKind(a2a) ?? { data: a2a }] };
}

function readPart(part: unknown): Part {
  if (typeof part === "string") return { text: part };
  // A message may hold hundreds of thousands of parts: what is clearly none is not shown to every schema.
  if (typeof part !== "object" || part === null) return { data: part };
  return ("kind" in part ? ofKind(part) : undefined) ?? ofMember(part) ?? { data: part };
}

function ofMember(part: object): Part | undefined {
  for (const member of MEMBERS) {
    if (!Object.hasOwn(part, member)) continue;
    const read = forms().ofMember[member].safeParse(part).data;
    if (read !== undefined) return given(read);
  }
  return undefined;
}

function ofKind(value: unknown): Part | undefined {
  const part = forms().ofKind.safeParse(value).data;
  switch (part?.kind) {
    case "text":
      return given({ text: part.text, metadata: part.metadata });
    case "data":
      return given({ data: part.data, metadata: part.metadata });
    case "file": {
      const { name: filename, mimeType: mediaType, ...content } = part.file;
      const place = "bytes" in content ? { raw: content.bytes } : { url: content.uri };
      return given({ ...place, mediaType, filename, metadata: part.metadata });
    }
    default:
      return undefined;
  }
}
