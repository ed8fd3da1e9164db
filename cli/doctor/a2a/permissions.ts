import type { NatsConnection } from "@nats-io/transport-node";
import { natsGrants, type PermissionsOf } from "../../../shared/nats/permissions.ts";
import { refusalOf } from "../../../shared/nats/refusal.ts";
import { permissionAdvice } from "../../nats.ts";
import { countText } from "../../text.ts";
import { type Finding, ok, warning } from "../finding.ts";

const PART = "permissions of the command";
const TIMEOUT_MS = 2_000;
/** How many subjects are named. */
const MAX_NAMED = 5;

/**
 * Requests that change nothing when they say nothing: of those that would make something an empty one is refused by
 * JetStream itself, after the server has looked whether it may be asked.
 */
const HARMLESS =
  /^\$JS\.API\.(INFO|STREAM\.(INFO|MSG\.GET)\.[^*>]+|CONSUMER\.(INFO|LIST|CREATE|MSG\.NEXT)\..+)$/;

/**
 * Whether this command may do on NATS what its verbs do, as far as that can be tried without doing it: what it is to
 * publish for others, such as tasks, is not tried.
 */
export async function permissionFinding(
  nc: Pick<NatsConnection, "request">,
  of: Pick<PermissionsOf, "deployment" | "agents">,
): Promise<Finding> {
  const tried = natsGrants({ ...of, functions: ["command"] }).filter(
    ({ kind, subject }) => kind === "publish" && HARMLESS.test(subject),
  );
  const refused = (await Promise.all(tried.map(({ subject }) => isRefused(nc, subject)))).flat();
  const [first] = refused;
  if (first === undefined)
    return ok(PART, `may do all that can be tried: ${countText(tried.length, "subject")}`);
  const more = refused.length > MAX_NAMED ? `, and ${refused.length - MAX_NAMED} more` : "";
  const says = `NATS does not let it publish on ${refused.slice(0, MAX_NAMED).join(", ")}${more}`;
  return warning(PART, says, permissionAdvice({ subject: first }));
}

/** @returns the subject, if the server refuses it */
async function isRefused(nc: Pick<NatsConnection, "request">, subject: string): Promise<string[]> {
  try {
    // A wildcard stands for names that are made anew each time.
    await nc.request(subject.replaceAll(/[*>]/g, "sluice-doctor"), "", { timeout: TIMEOUT_MS });
    return [];
  } catch (error) {
    return refusalOf(error) === undefined ? [] : [subject];
  }
}
