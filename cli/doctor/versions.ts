import type { Place } from "../place.ts";
import { cleanLine } from "../text.ts";
import { type Finding, ok, warning, wrong } from "./finding.ts";

/** The Node that functions run under, and this command with them (infra/functions.ts). */
const NODE_MAJOR = 24;

/** Whether this command's Node is the one it is written for. */
export function nodeFinding(version: string): Finding {
  const major = Number(version.replace(/^v/, "").split(".")[0]);
  if (major >= NODE_MAJOR) return ok("node", version);
  return wrong("node", version, `start the command as ./sluice: it brings Node ${NODE_MAJOR}`);
}

/** Whether the functions are of the version that this command is of. */
export function sluiceFinding({ outputs, label }: Pick<Place, "outputs" | "label">, own: string): Finding {
  const { Version: theirs } = outputs;
  const part = "sluice";
  if (theirs === own) return ok(part, `${own}, here and there`);
  const says =
    theirs === undefined ? `${label} tells no version` : `${label} runs ${cleanLine(theirs)}, this is ${own}`;
  return warning(part, says, "deploy it, or start it, again, or use the command that came with it");
}

/** How a deployed stack is, in CloudFormation's words. */
export function stackFinding({ name, status }: { readonly name: string; readonly status: string }): Finding {
  const part = `stack ${name}`;
  const says = `is ${cleanLine(status)}`;
  if (/^(CREATE|UPDATE|IMPORT)_COMPLETE$/.test(status)) return ok(part, says);
  if (/ROLLBACK_COMPLETE$|IN_PROGRESS$/.test(status))
    return warning(
      part,
      says,
      "see its events in CloudFormation: the last deployment is not, or not yet, in force",
    );
  return wrong(part, says, "see its events in CloudFormation, and deploy it again");
}
