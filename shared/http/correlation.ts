/** Where a request stands among the others that it came with. */
export interface Correlation {
  /** The same through a whole chain of calls. */
  readonly correlationId?: string | undefined;
  /** The message that is the immediate cause. */
  readonly parentId?: string | undefined;
  /** As W3C Trace Context has it. */
  readonly traceparent?: string | undefined;
}

/** Characters of an id that is sent along. */
export const MAX_CORRELATION_ID = 256;

/** Version 00, and what later ones have in common with it; ids of zeros alone are none (W3C Trace Context §3.2). */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * The headers that say where a request belongs. What no header can carry is left out: a call does not fail for the sake of
 * its trace.
 */
export function correlationHeaders({
  correlationId,
  parentId,
  traceparent,
}: Correlation): Record<string, string> {
  return {
    ...(isSound(correlationId) && { "x-correlation-id": correlationId }),
    ...(isSound(parentId) && { "x-parent-id": parentId }),
    ...(traceparent !== undefined && TRACEPARENT.test(traceparent) && { traceparent }),
  };
}

function isSound(id: string | undefined): id is string {
  return id !== undefined && id.length <= MAX_CORRELATION_ID && /^[\x21-\x7e]+$/.test(id);
}
