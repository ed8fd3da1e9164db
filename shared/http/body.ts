import type { IncomingMessage } from "node:http";
import { pipeline, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { codeOf, GuardedRequestError } from "./errors.ts";
import type { Timer, Watch } from "./watch.ts";

/** What is asked for (RFC 9110 §12.5.3) and understood. */
export const ACCEPT_ENCODING = "gzip, deflate, br";

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

interface Bounds {
  readonly label: string;
  readonly maxBytes: number;
  readonly watch: Watch;
  /** Started anew whenever something comes or is asked for. */
  readonly idle: Timer | undefined;
}

/**
 * The body of an answer, decompressed as it is read and counted after that: what is over the bound is not
 * inflated. Its end, an error and `cancel` alike close the connection.
 *
 * @throws GuardedRequestError `broken` when it is encoded in another way; the stream fails with `too_large`, `broken` or what
 *   the watch says
 */
export function boundedBody(answer: IncomingMessage, bounds: Bounds): ReadableStream<Uint8Array> {
  const { label, maxBytes, watch, idle } = bounds;
  const chunks: AsyncIterator<Uint8Array> = decoded(answer, label)[Symbol.asyncIterator]();
  let bytes = 0;
  const close = () => {
    watch.close();
    answer.destroy();
  };
  const next = async () => {
    idle?.refresh();
    const { done, value } = await watch.over(chunks.next());
    idle?.refresh();
    if (done === true) return undefined;
    bytes += value.byteLength;
    if (bytes > maxBytes)
      throw new GuardedRequestError("too_large", label, `its answer is over ${maxBytes} bytes`, {
        sent: true,
      });
    return value;
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const chunk = await next();
          if (chunk !== undefined) return controller.enqueue(chunk);
          close();
          controller.close();
        } catch (error) {
          close();
          controller.error(failure(label, error, watch.signal));
        }
      },
      cancel: close,
    },
    // Nothing is read ahead of the reader.
    { highWaterMark: 0 },
  );
}

function decoded(answer: IncomingMessage, label: string): AsyncIterable<Uint8Array> {
  const encoding = (answer.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (encoding === "identity" || encoding === "") return answer;
  const decoder = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding]?.() : undefined;
  if (decoder === undefined) {
    answer.destroy();
    throw new GuardedRequestError(
      "broken",
      label,
      `its answer is encoded otherwise than ${ACCEPT_ENCODING}`,
      {
        sent: true,
      },
    );
  }
  // The reader of the last stream is told of an error of either.
  return pipeline(answer, decoder, () => {});
}

function failure(label: string, error: unknown, signal: AbortSignal): unknown {
  const reason: unknown = signal.aborted ? signal.reason : error;
  if (reason instanceof GuardedRequestError) reason.sent = true;
  if (signal.aborted || reason instanceof GuardedRequestError) return reason;
  const code = codeOf(reason);
  return new GuardedRequestError("broken", label, `its answer broke off (${code ?? "no reason given"})`, {
    sent: true,
    ...(code !== undefined && { code }),
  });
}
