/** The largest `payload` value of an envelope as JSON, in bytes (docs/wire.md §10). */
export const MAX_PAYLOAD_BYTES = 1_048_576;

/** The largest event as encoded, in bytes: under the 1,048,576 that streams take, with room for what is added later. */
export const MAX_EVENT_BYTES = 1_000_000;

/** What of an event takes up room. */
interface Sized {
  readonly subject: string;
  readonly msgId: string;
  readonly body: string;
}

/** The size of an event in bytes: its subject, its headers as NATS encodes them, and its body. */
export function eventSize(event: Sized): number {
  return Buffer.byteLength(`${event.subject}NATS/1.0\r\nNats-Msg-Id: ${event.msgId}\r\n\r\n${event.body}`);
}

/** How many bytes a text takes as a JSON string, without the quotes. */
export function jsonLength(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2;
}

/**
 * The longest beginning of a text that takes at most `budget` bytes as a JSON string ({@link jsonLength}), cut
 * between code points; the text itself when it fits.
 */
export function cutToFit(text: string, budget: number): string {
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += encodedLength(character);
    if (bytes > budget) return text.slice(0, end);
    end += character.length;
  }
  return text;
}

/** What JSON.stringify makes of one code point, in UTF-8 bytes (ECMA-262, QuoteJSONString). */
function encodedLength(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code === 0x22 || code === 0x5c) return 2;
  if (code < 0x20) return "\b\t\n\f\r".includes(character) ? 2 : 6;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  if (code >= 0xd800 && code <= 0xdfff) return 6;
  return code < 0x10000 ? 3 : 4;
}
