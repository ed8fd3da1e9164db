import * as z from "zod";
import { CliError, EXIT } from "../errors.ts";
import { invokeFunction } from "../invoke.ts";
import { type Output, processOutput } from "../output.ts";
import { findPlace } from "../place.ts";
import { currentHome } from "../session.ts";
import { cleanLine } from "../text.ts";
import type { VerbOptions } from "./command.ts";
import { isUnsigned } from "./show-remotes.ts";

/** How much of a reason or of a list of skills is shown, in characters. */
const MAX_SHOWN = 1_000;

const refreshed = z.object({
  name: z.string(),
  outcome: z.enum(["fresh", "unchanged", "updated", "failed"]),
  added: z.array(z.string()),
  removed: z.array(z.string()),
  warning: z.string().optional(),
  offeredKey: z.string().optional(),
});
type Refreshed = z.infer<typeof refreshed>;

/** What the function `cards` answers (functions/cards/refresh.ts). */
const answer = z.union([
  z.object({ refused: z.string() }),
  z.object({ refreshed: z.array(refreshed), late: z.array(z.string()) }),
]);

/**
 * `peers refresh`: has the cards of remote agents fetched now, of all or of one, whether they are fresh or not.
 *
 * @throws CliError `usage` when the deployment has no such remote agent
 */
export async function refresh(name: string | undefined, given: VerbOptions): Promise<number> {
  const out = processOutput(given.json);
  const place = await findPlace(currentHome(given), given.stack);
  out.waitingFor("fetching cards");
  const said = await invokeFunction(place, "cards", { refresh: name === undefined ? "all" : [name] });
  out.done();
  const read = answer.safeParse(said);
  if (!read.success) throw new CliError(EXIT.failed, `${place.label} is of an older version: deploy it`);
  if ("refused" in read.data) throw new CliError(EXIT.usage, cleanLine(read.data.refused, MAX_SHOWN));
  const { refreshed: all, late } = read.data;
  for (const of of all) tell(out, of);
  for (const of of late) {
    out.record({ remote: of, outcome: "late" });
    out.line(`${of}: there was no time to ask it; ask again`);
  }
  if (all.length + late.length === 0) out.line("agents.yaml of the deployment names no remote agents");
  return late.length > 0 || all.some(({ outcome }) => outcome === "failed") ? EXIT.failed : EXIT.ok;
}

function tell(out: Output, { name, outcome, added, removed, warning, offeredKey }: Refreshed): void {
  const offered = offeredKey ?? null;
  out.record({ remote: name, outcome, added, removed, warning: warning ?? null, offered });
  const skills = [...added.map((of) => `+${of}`), ...removed.map((of) => `-${of}`)].join(" ");
  const changed = skills === "" ? "updated; the same skills" : `updated: ${cleanLine(skills, MAX_SHOWN)}`;
  if (outcome === "failed") out.line(cleanLine(warning ?? `${name}: failed`, MAX_SHOWN));
  else out.line(`${name}: ${outcome === "updated" ? changed : "its card has not changed"}`);
  if (isUnsigned(warning))
    out.line(`${name}: its card is not signed any more: ./sluice peers accept ${name} --unsigned`);
  if (offeredKey !== undefined) out.line(`${name}: look at the key it offers: ./sluice peers ${name}`);
}
