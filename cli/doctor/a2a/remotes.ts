import type { Peer } from "../../../shared/cards/peers.ts";
import type { RemoteConfig } from "../../../shared/config/remotes.ts";
import { readRemoteCredentials } from "../../../shared/remotes/credentials.ts";
import { cleanLine, durationText } from "../../text.ts";
import { type Finding, ok, warning, wrong } from "../finding.ts";
import type { SecretLook } from "../secrets.ts";

/** Each is looked after every minute; so long without it nobody does so. */
const PROBE_OVERDUE_MS = 5 * 60_000;
/** A card is asked for every ten minutes, or kept for an hour by its own word (docs/remotes.md). */
const CARD_OVERDUE_MS = 2 * 3_600_000;
const SEE_LOG = "see what the function cards logs";

/** What to do about each cause, by how it is told (shared/remotes, shared/http); the first that fits counts. */
const CAUSES: readonly (readonly [told: RegExp, todo: (id: string) => string])[] = [
  [
    /outbound\.allow/,
    () => "if it is meant to be reached, list its origin under outbound.allow in agents.yaml",
  ],
  [/credentials of the remote agent/, () => "put its credentials where auth.credentials says"],
  [/signature_missing/, (id) => `if its owner signs no more: ./sluice peers accept ${id} --unsigned`],
  [/signature/, () => "ask its owner whether its card is theirs"],
  [/\b40[13]\b/, () => "see that it takes the credentials that auth names"],
  [/got [34]\d\d/, () => "see that url in agents.yaml is its address: its card is looked for beside it"],
  [/: (card|skills|supportedInterfaces)\b/, () => "tell its owner: its card is not as A2A has it"],
];

function todoFor(id: string, reason: string | undefined): string {
  const fits = CAUSES.find(([told]) => told.test(reason ?? ""));
  return fits === undefined
    ? `see that it runs, and that url in agents.yaml is its address; ${SEE_LOG}`
    : fits[1](id);
}

/** What is asked about a remote agent's credentials; what they are is never told. */
export interface CredentialLook {
  /** Whether functions in AWS are to read them. */
  readonly deployed: boolean;
  /** This command's own. */
  readonly env: NodeJS.ProcessEnv;
  /** The names of the variables with credentials that the running host has, where one tells. */
  readonly ofHost?: readonly string[] | undefined;
  readonly file: (path: string) => Promise<string>;
  readonly secret: SecretLook;
}

/**
 * Whether the credentials of a remote agent are set: without them it is asked nothing.
 *
 * @throws whatever Secrets Manager does
 */
export async function credentialFinding(remote: RemoteConfig, look: CredentialLook): Promise<Finding> {
  const part = `credentials of ${remote.name}`;
  const { credentials } = remote.auth ?? {};
  if (credentials === undefined) return ok(part, "none are needed");
  if (credentials.startsWith("secret:")) return secretFinding(part, credentials, look.secret);
  if (look.deployed)
    return wrong(
      part,
      `${credentials} is of this machine: functions in the cloud have no such thing`,
      "put it into Secrets Manager, and name it secret:NAME",
    );
  return ownFinding(part, remote, look);
}

async function secretFinding(part: string, credentials: string, look: SecretLook): Promise<Finding> {
  const set = await look(credentials.slice("secret:".length));
  if (set) return ok(part, `${credentials} is set`);
  const says = `${credentials} ${set === undefined ? "does not exist" : "has no value"}`;
  return wrong(part, says, "set it in Secrets Manager: without it the agent is asked nothing");
}

/** Where no host tells which variables it has, those are looked at which this command has; the host may have others. */
async function ownFinding(part: string, remote: RemoteConfig, look: CredentialLook): Promise<Finding> {
  const { credentials = "" } = remote.auth ?? {};
  const { env, file, ofHost } = look;
  const isVariable = credentials.startsWith("env:");
  if (isVariable && ofHost !== undefined)
    return ofHost.includes(credentials.slice("env:".length))
      ? ok(part, `${credentials} is set`)
      : wrong(
          part,
          `${credentials} is empty or not there, as the local host was started`,
          "set it, and start the host again",
        );
  try {
    await readRemoteCredentials([remote], { env, file, secret: async () => "" });
    return ok(part, `${credentials} is set`);
  } catch {
    const says = `${credentials} is empty or not there`;
    return isVariable
      ? warning(part, `${says}, as this command has it`, "see that `npm start` is given it")
      : wrong(part, says, "put the credentials there, in a file that only you may read");
  }
}

/** How it stands with a remote agent, by its last refresh and the last look after it. */
export function remoteFindings(peer: Peer, now: number): Finding[] {
  const { id, status, failing, health, lastSeen, notes } = peer;
  const part = `remote ${id}`;
  const ago = (at: number) => `${durationText(Math.max(0, now - at))} ago`;
  const findings: Finding[] = [];
  if (failing?.offeredKey !== undefined)
    findings.push(
      warning(
        part,
        `another key has signed its card: ${cleanLine(failing.offeredKey, 200)}; the last good card is kept`,
        `ask its owner whether that is theirs, and then ./sluice peers accept ${id}`,
      ),
    );
  else if (failing !== undefined)
    findings.push(
      warning(
        part,
        `its card could not be had ${failing.failures} ${failing.failures === 1 ? "time" : "times"} in a row: ${cleanLine(failing.reason ?? "no reason is known", 300)}${lastSeen === undefined ? "" : `; that of ${ago(lastSeen)} is kept`}`,
        todoFor(id, failing.reason),
      ),
    );
  else if (status.state === "unseen")
    findings.push(
      warning(part, "its card was not asked for yet", "wait a minute, or ./sluice peers refresh"),
    );
  else if (lastSeen !== undefined && now - lastSeen > CARD_OVERDUE_MS)
    findings.push(warning(part, `its card was asked for last ${ago(lastSeen)}`, SEE_LOG));
  if (health !== undefined && !health.reachable)
    findings.push(
      warning(
        part,
        `did not answer ${ago(health.at)}: ${cleanLine(health.error ?? "no reason is known", 300)}`,
        todoFor(id, health.error),
      ),
    );
  else if (health !== undefined && now - health.at > PROBE_OVERDUE_MS)
    findings.push(warning(part, `was looked after last ${ago(health.at)}`, SEE_LOG));
  if (peer.supported === false)
    findings.push(
      warning(
        part,
        "it speaks no A2A 0.3 or 1.0 over JSON-RPC or HTTP",
        "see what its card lists, and update it",
      ),
    );
  if (findings.length > 0) return findings;
  const card = lastSeen === undefined ? "" : `, its card of ${ago(lastSeen)}`;
  const { length } = notes;
  const slips =
    length === 0
      ? ""
      : `; ${length === 1 ? "1 thing on it is" : `${length} things on it are`} not as expected, see ./sluice peers ${id}`;
  return [ok(part, `answers${card}${slips}`)];
}
