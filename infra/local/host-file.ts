import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { FileTrouble } from "./file-trouble.ts";

const SETTLE_MS = 50;
/** How often it is looked whether the file, and the folder with it, is still there. */
const LOOK_MS = 1_000;

/** `host.json`: what the running host tells other programs on this machine about itself, kept up to date. */
export class HostFile {
  readonly #path: string;
  readonly #trouble: FileTrouble;
  #look: NodeJS.Timeout | undefined;
  #describe: (() => object) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(path: string, trouble: FileTrouble) {
    this.#path = path;
    this.#trouble = trouble;
  }

  /** Writes what `describe` returns, now, after each {@link changed}, and when somebody has removed the file. */
  write(describe: () => object): void {
    this.#describe = describe;
    this.#save();
    this.#look ??= setInterval(() => {
      if (!existsSync(this.#path)) this.#save();
    }, LOOK_MS).unref();
  }

  changed(): void {
    this.#timer ??= setTimeout(() => this.#save(), SETTLE_MS);
  }

  remove(): void {
    this.#describe = undefined;
    clearTimeout(this.#timer);
    clearInterval(this.#look);
    rmSync(this.#path, { force: true });
  }

  #save(): void {
    this.#timer = undefined;
    const description = this.#describe?.();
    if (description === undefined) return;
    const next = `${this.#path}.next`;
    this.#trouble.attempt(() => {
      writeFileSync(next, `${JSON.stringify(description, null, 2)}\n`);
      renameSync(next, this.#path); // a reader sees the old or the new one, never half
    });
  }
}
