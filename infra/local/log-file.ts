import { closeSync, mkdirSync, openSync, renameSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** The size at which a log file is put aside; one older file is kept. */
export const MAX_LOG_BYTES = 10 * 1024 * 1024;

/** A log file that cannot grow without bound: at {@link MAX_LOG_BYTES} it becomes `<path>.1` and starts again. */
export class LogFile {
  readonly path: string;
  readonly #maxBytes: number;
  #file: number;
  #size: number;

  constructor(path: string, maxBytes = MAX_LOG_BYTES) {
    mkdirSync(dirname(path), { recursive: true });
    this.path = path;
    this.#maxBytes = maxBytes;
    this.#file = openSync(path, "a");
    this.#size = statSync(path).size;
  }

  write(line: string): void {
    const bytes = Buffer.from(`${line}\n`);
    if (this.#size > 0 && this.#size + bytes.length > this.#maxBytes) this.#rotate();
    writeSync(this.#file, bytes);
    this.#size += bytes.length;
  }

  close(): void {
    closeSync(this.#file);
  }

  #rotate(): void {
    // The old one is closed last: when there can be no new one, it is still there to be written and closed.
    renameSync(this.path, `${this.path}.1`);
    const next = openSync(this.path, "a");
    closeSync(this.#file);
    this.#file = next;
    this.#size = 0;
  }
}

/**
 * A line of a function's as its file keeps it. A structured one says itself when it was written; before any other, such
 * as one of Lambda's own, stands the time that CloudWatch would note with it.
 *
 * @param now milliseconds since 1970
 */
export function dated(line: string, now = Date.now()): string {
  return line.startsWith("{") ? line : `${new Date(now).toISOString()} ${line}`;
}
