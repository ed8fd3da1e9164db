import { randomUUID } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { KeyVault } from "./keys.ts";
import { SigningKey } from "./signing-key.ts";

/** Where the local host keeps the key, in its data folder. */
const FOLDER = "signing-key";

/** The folder of the key, in a data folder. */
export function keyFolder(dataDir: string): string {
  return join(dataDir, FOLDER);
}

/**
 * A vault in a folder that only its owner may enter. Each key is a file of its own with the next number, which is linked
 * into its place and so put there by one alone; then the earlier ones are removed.
 *
 * @param folder made when a key is
 */
export function folderVault(folder: string): KeyVault {
  const pathOf = (number: number) => join(folder, `${number}.json`);

  async function latest(): Promise<{ number: number; text: string } | undefined> {
    // A file that is gone when it is read was an earlier key's: its successor is there by then.
    for (;;) {
      const [number] = (await numbersIn(folder)).toSorted((a, b) => b - a);
      if (number === undefined) return undefined;
      const text = await orNothing(readFile(pathOf(number), "utf8"), "ENOENT");
      if (text !== undefined) return { number, text };
    }
  }

  /** @returns false if the number is taken */
  async function put(number: number, text: string): Promise<boolean> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const draft = join(folder, `.${randomUUID()}`);
    try {
      await writeSynced(draft, text);
      const linked = await orNothing(
        link(draft, pathOf(number)).then(() => true),
        "EEXIST",
      );
      return linked === true;
    } finally {
      await rm(draft, { force: true });
    }
  }

  return {
    label: `the folder ${folder}`,
    read: async () => (await latest())?.text,
    create: async (text) => (await latest()) === undefined && put(1, text),

    async replace(old, text) {
      const current = await latest();
      if (current === undefined || SigningKey.open(current.text, folder).did !== old) return false;
      if (!(await put(current.number + 1, text))) return false;
      for (const number of await numbersIn(folder))
        if (number <= current.number) await rm(pathOf(number), { force: true });
      return true;
    },
  };
}

async function numbersIn(folder: string): Promise<number[]> {
  const names = (await orNothing(readdir(folder), "ENOENT")) ?? [];
  return names.flatMap((name) => {
    const [, number] = /^(\d{1,9})\.json$/.exec(name) ?? [];
    return number === undefined ? [] : [Number(number)];
  });
}

/** Nothing of it may be seen by another user, nor be lost once it is in its place. */
async function writeSynced(path: string, text: string): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  await file.writeFile(text);
  await file.sync();
}

/** What is promised; `undefined` where it fails with this code. */
async function orNothing<T>(promised: Promise<T>, code: string): Promise<T | undefined> {
  try {
    return await promised;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === code) return undefined;
    throw error;
  }
}
