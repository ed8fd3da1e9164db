import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import type { Place } from "../place.ts";
import { cleanLine, localTime } from "../text.ts";
import { examine, type Finding, ok, warning } from "./finding.ts";

/** `alarms.json` of a local host's data folder (docs/local-host.md, "The data folder"). */
const alarmsFile = z.object({
  alarms: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      state: z.string(),
      since: z.iso.datetime().optional().catch(undefined),
    }),
  ),
});
type Alarm = z.infer<typeof alarmsFile>["alarms"][number];

/** The pages are named in the alarms' descriptions (infra/observability/index.ts). */
const RUNBOOK = /docs\/runbooks\/[a-z0-9-]+\.md/;

/**
 * Tells which alarms of the local host are in ALARM. Those of a stack in AWS tell whom they are set to tell, and are not
 * looked at.
 */
export async function checkAlarms({ local }: Pick<Place, "local">): Promise<readonly Finding[]> {
  if (local?.dataDir === undefined) return [];
  const path = join(local.dataDir, "alarms.json");
  if (!existsSync(path)) return [];
  return examine("alarms", "start the local host again, which writes them anew", async () => {
    const { alarms } = alarmsFile.parse(JSON.parse(await readFile(path, "utf8")));
    const risen = alarms.filter(({ state }) => state === "ALARM");
    if (risen.length === 0) return [ok("alarms", `none of ${alarms.length} is in ALARM`)];
    return risen.map((alarm) => risenFinding(alarm, local.timeScale));
  });
}

/** Under a time scale the metrics' clock is not ours, and no time is told. */
function risenFinding({ name, description, since }: Alarm, timeScale: number): Finding {
  const page = RUNBOOK.exec(description)?.[0];
  const what = cleanLine(description.replace(/\s*Runbook: \S+$/, ""), 500);
  const at = since === undefined || timeScale !== 1 ? "" : ` since ${localTime(new Date(since))}`;
  return warning(
    `alarm ${cleanLine(name, 128)}`,
    `in ALARM${at}: ${what}`,
    page === undefined ? "see docs/runbooks" : `see ${page}`,
  );
}
