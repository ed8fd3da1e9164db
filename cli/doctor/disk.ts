import { statfs } from "node:fs/promises";
import type { Place } from "../place.ts";
import { sizeText } from "../text.ts";
import { examine, type Finding, ok, warning, wrong } from "./finding.ts";

/** With less than this the next segment of a stream, or the table's log, may not be written any more. */
const FULL_BYTES = 32 * 1_048_576;
const LOW_BYTES = 256 * 1_048_576;

/**
 * Tells whether the local host's disk has room: on a full one nothing is taken or worked on, and what is asked for
 * answers as if all were well.
 *
 * @param freeOf how many bytes there are for a folder
 */
export async function checkDisk(
  { local }: Pick<Place, "local">,
  freeOf: (folder: string) => Promise<number> = freeBytes,
): Promise<readonly Finding[]> {
  const folder = local?.dataDir;
  if (folder === undefined) return [];
  return examine("disk", "see that the data folder is there; if not, start the host again", async () => {
    const free = await freeOf(folder);
    const says = `${sizeText(free)} free for ${folder}`;
    if (free >= LOW_BYTES) return [ok("disk", says)];
    const todo = "make room on it, or start the host with a folder on another: npm start -- --data FOLDER";
    return [free < FULL_BYTES ? wrong("disk", says, todo) : warning("disk", says, todo)];
  });
}

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
