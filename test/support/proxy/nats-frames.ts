/** One protocol message of NATS, from a client or from a server. */
export interface Frame {
  /** Upper case: `PUB`, `HPUB`, `MSG`, `HMSG`, `INFO`, `PING`, … */
  readonly op: string;
  /** What follows on the line, without a payload's sizes. */
  readonly args: readonly string[];
  /** The payload without its headers; empty when there is none. */
  readonly body: Buffer;
  /** Exactly what was received. */
  readonly raw: Buffer;
}

const CRLF = "\r\n";
/** How many sizes stand at the end of the line of what has a payload (NATS docs: "Client protocol"). */
const SIZES: Readonly<Record<string, 1 | 2>> = { PUB: 1, MSG: 1, HPUB: 2, HMSG: 2 };

/** Cuts a stream of bytes into frames, however the bytes are split over chunks. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);
  /** Chunks that do not complete the frame that is being read, and how many bytes it needs. */
  #more: Buffer[] = [];
  #moreBytes = 0;
  #needed = 0;

  /** The frames that are complete with this chunk. */
  push(chunk: Buffer): Frame[] {
    this.#more.push(chunk);
    this.#moreBytes += chunk.byteLength;
    if (this.#rest.byteLength + this.#moreBytes < this.#needed) return [];
    this.#rest = Buffer.concat([this.#rest, ...this.#more]);
    this.#more = [];
    this.#moreBytes = 0;
    const frames: Frame[] = [];
    for (let frame = this.#next(); frame !== undefined; frame = this.#next()) frames.push(frame);
    return frames;
  }

  #next(): Frame | undefined {
    this.#needed = 0;
    const end = this.#rest.indexOf(CRLF);
    if (end === -1) return undefined;
    const [op = "", ...args] = this.#rest
      .subarray(0, end)
      .toString("utf8")
      .trim()
      .split(/[ \t]+/);
    const sizes = SIZES[op.toUpperCase()] ?? 0;
    const numbers = args.slice(args.length - sizes).map(Number);
    const payload = sizes === 0 ? 0 : (numbers.at(-1) ?? 0) + CRLF.length;
    const start = end + CRLF.length;
    if (this.#rest.byteLength < start + payload) {
      this.#needed = start + payload;
      return undefined;
    }
    const headers = sizes === 2 ? (numbers[0] ?? 0) : 0;
    const raw = this.#rest.subarray(0, start + payload);
    const body = sizes === 0 ? Buffer.alloc(0) : raw.subarray(start + headers, raw.byteLength - CRLF.length);
    this.#rest = this.#rest.subarray(start + payload);
    return { op: op.toUpperCase(), args: args.slice(0, args.length - sizes), body, raw };
  }
}
