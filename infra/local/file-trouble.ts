import { existsSync } from "node:fs";
import { messageOf } from "./errors.ts";

/**
 * Files of the data folder that cannot be written, on a full disk above all: the host goes on without them, and says
 * so once for each kind of error, not with each line.
 */
export class FileTrouble {
  readonly #dataDir: string;
  readonly #onTrouble: (message: string) => void;
  readonly #told = new Set<string>();

  constructor(dataDir: string, onTrouble: (message: string) => void) {
    this.#dataDir = dataDir;
    this.#onTrouble = onTrouble;
  }

  /** Does what may fail because of the disk. */
  attempt(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.#tell(error);
    }
  }

  #tell(error: unknown): void {
    const isGone = !existsSync(this.#dataDir);
    const kind = isGone ? "gone" : error instanceof Error && "code" in error ? String(error.code) : "other";
    if (this.#told.has(kind)) return;
    this.#told.add(kind);
    this.#onTrouble(
      isGone
        ? `the data folder ${this.#dataDir} was removed: what happens now will be lost; stop, and start again`
        : `the data folder cannot be written: ${messageOf(error)}; the host goes on without its logs`,
    );
  }
}
