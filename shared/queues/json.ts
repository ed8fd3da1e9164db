/**
 * A value as JSON that any queue takes as a body.
 *
 * SQS refuses bodies with U+FFFE or U+FFFF, and some of its implementations those with characters beyond U+FFFF (SQS
 * API: SendMessage, MessageBody). Both can stand only inside JSON's strings, where an escape means the same.
 */
export function queueJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\uD800-\uDFFF\uFFFE\uFFFF]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16)}`,
  );
}
