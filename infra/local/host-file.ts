import { renameSync, rmSync, writeFileSync } from "node:fs";

const SETTLE_MS = 50;

/** `host.json`: what the running host tells other programs on this machine about itself, kept up to date. */
export class HostFile {
  readonly #path: string;
  #describe: (() => object) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Writes what `describe` returns, now and after each {@link changed}. */
  write(describe: () => object): void {
    this.#describe = describe;
    this.#save();
  }

  changed(): void {
    this.#timer ??= setTimeout(() => this.#save(), SETTLE_MS);
  }

  remove(): void {
    this.#describe = undefined;
    clearTimeout(this.#timer);
    rmSync(this.#path, { force: true });
  }

  #save(): void {
    this.#timer = undefined;
    if (this.#describe === undefined) return;
    const next = `${this.#path}.next`;
    writeFileSync(next, `${JSON.stringify(this.#describe(), null, 2)}\n`);
    renameSync(next, this.#path); // a reader sees the old or the new one, never half
  }
}
