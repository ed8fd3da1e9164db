import type { HostedAgent } from "../../shared/config/deployment.ts";
import { CliError } from "../errors.ts";
import type { Home } from "../home.ts";
import type { Output } from "../output.ts";
import { ownAgents } from "../own-agents.ts";
import type { Place } from "../place.ts";

/** The policies by which our agents go, and who says so: the file alone, or the table as well. */
export interface Rules {
  readonly from: "file" | "table";
  readonly agents: readonly HostedAgent[];
}

/**
 * The policies in force, as the stack tells that is named, or that of the local host that runs here. Where there is none
 * they are the file's; where it cannot be asked, too, and that is said.
 *
 * @throws CliError `usage` when `agents.yaml` or an agent's file is not as expected; when the stack that was named does
 *   not answer
 */
export async function rulesOf(home: Home, named: Place | undefined, out: Output): Promise<Rules> {
  const agents = await ownAgents(home);
  const file: Rules = { from: "file", agents };
  if (agents.length === 0 || (named === undefined && home.stack === undefined)) return file;
  try {
    return { from: "table", agents: await inForceAt(home, named, agents) };
  } catch (error) {
    if (named !== undefined || !(error instanceof CliError)) throw error;
    out.note(`what was changed of policies since they were deployed is not known: ${error.message}`);
    return file;
  }
}

/** Our agents with the policies in force, as a stack tells them. @throws CliError as {@link rulesOf} */
export async function agentsInForce(home: Home, place: Place): Promise<readonly HostedAgent[]> {
  return await inForceAt(home, place, await ownAgents(home));
}

async function inForceAt(
  home: Home,
  named: Place | undefined,
  agents: readonly HostedAgent[],
): Promise<HostedAgent[]> {
  // The clients of AWS take long to load.
  const [{ findPlace }, { inForce }] = await Promise.all([
    import("../place.ts"),
    import("../policy/open.ts"),
  ]);
  return await inForce(named ?? (await findPlace(home)), agents);
}
