import type { Home } from "../home.ts";
import { pausesOf } from "../pauses.ts";
import type { Place } from "../place.ts";
import { cleanLine, localTime } from "../text.ts";
import { examine, type Finding, warning } from "./finding.ts";

/** Tells which agents are paused: somebody meant it, and may have forgotten it. */
export async function checkPauses(
  place: Place,
  home: Pick<Home, "deployment" | "agents">,
  runtimes: readonly { readonly runtime: string }[],
): Promise<readonly Finding[]> {
  using pauses = pausesOf(home, place);
  const found = await Promise.all(
    runtimes.map(({ runtime }) =>
      examine(`agent ${runtime}`, "allow dynamodb:GetItem on the table, to know", async () => {
        const pause = await pauses.pauseOf(runtime);
        if (pause === undefined) return [];
        const says = `paused since ${localTime(new Date(pause.at))} by ${cleanLine(pause.by, 64)}: new tasks ${
          pause.refuse ? "are rejected" : "wait"
        }`;
        return [warning(`agent ${runtime}`, says, `./sluice resume ${runtime}`)];
      }),
    ),
  );
  return found.flat();
}
