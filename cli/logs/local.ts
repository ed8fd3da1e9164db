import { closeSync, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { basename, join } from "node:path";
import { type LogLine, lineOf, timeOf } from "./line.ts";
import { inOrder, type LogQuery, type Logs, MAX_LINES, type Tail } from "./source.ts";

/** How much of a file is read at once, in bytes. */
const CHUNK = 1 << 20;
const NEWLINE = 0x0a;

/** The log files of a local host (docs/local-host.md, the data folder): `<function>.log`, and `.log.1` before it. */
export function localLogs(folder: string): Logs {
  return {
    where: folder,
    tail: (query) => new FilesTail(folder, query),
    [Symbol.dispose]() {},
  };
}

/** How far a file has been read. It is known by its inode, for at its bound it gets another name. */
interface Progress {
  offset: number;
  /** When the last line before was written, for one that does not say so, as of an older version's host. */
  at: number;
}

class FilesTail implements Tail {
  readonly #folder: string;
  readonly #query: LogQuery;
  readonly #progress = new Map<number, Progress>();

  constructor(folder: string, query: LogQuery) {
    this.#folder = folder;
    this.#query = query;
  }

  async next(): Promise<LogLine[]> {
    const files = readdirSync(this.#folder)
      .filter((name) => /\.log(\.1)?$/.test(name))
      .sort()
      .reverse(); // the older one of two first
    return inOrder(files.flatMap((name) => this.#read(join(this.#folder, name)))).slice(-MAX_LINES);
  }

  #read(path: string): LogLine[] {
    const file = openSync(path, "r");
    try {
      const { ino, size } = fstatSync(file);
      const known = this.#progress.get(ino);
      // A shorter file is another one, under the number of one that is gone.
      const progress = known !== undefined && known.offset <= size ? known : { offset: 0, at: 0 };
      this.#progress.set(ino, progress);
      const name = basename(path).replace(/\.log(\.1)?$/, "");
      const lines: LogLine[] = [];
      for (const { text, offset } of wholeLines(file, progress)) {
        progress.at = timeOf(text) ?? progress.at;
        if (!this.#isWanted(text)) continue;
        const line = lineOf({ id: `${ino}:${offset}`, text, function: name, at: progress.at });
        if (line === undefined || line.at < this.#query.since || !this.#isMeant(line)) continue;
        lines.push(line);
      }
      return lines;
    } finally {
      closeSync(file);
    }
  }

  #isWanted(text: string): boolean {
    const { of } = this.#query;
    return of === "trouble" || of.some((term) => text.includes(term));
  }

  #isMeant({ level }: LogLine): boolean {
    return this.#query.of !== "trouble" || level === "WARN" || level === "ERROR";
  }
}

/** The lines from the progress on; one without its end yet is left for the next time. */
function* wholeLines(file: number, progress: Progress): Generator<{ text: string; offset: number }> {
  let rest = Buffer.alloc(0);
  for (let at = progress.offset; ; ) {
    const chunk = Buffer.alloc(CHUNK);
    const count = readSync(file, chunk, 0, CHUNK, at);
    if (count === 0) return;
    at += count;
    rest = Buffer.concat([rest, chunk.subarray(0, count)]);
    for (let end = rest.indexOf(NEWLINE); end !== -1; end = rest.indexOf(NEWLINE)) {
      const text = rest.subarray(0, end).toString("utf8");
      const offset = progress.offset;
      rest = rest.subarray(end + 1);
      progress.offset += end + 1;
      yield { text, offset };
    }
  }
}
