import { readFileSync } from "node:fs";
import type { NatsConnection } from "@nats-io/transport-node";
import { readServerUrls } from "../shared/config/server-urls.ts";
import { clientName, connectNats } from "../shared/nats/connect.ts";
import { NatsError } from "../shared/nats/errors.ts";
import type { Refusal } from "../shared/nats/refusal.ts";
import { CliError, EXIT } from "./errors.ts";
import { type Home, USUAL_SERVER, type Where } from "./home.ts";
import { USUAL_START } from "./start-again.ts";

/** What the user said about NATS. */
export interface NatsOptions {
  /** URL, or several divided by commas. */
  readonly nats?: string | undefined;
  /** Path of a credentials file. */
  readonly creds?: string | undefined;
  /** Path of a PEM file. */
  readonly ca?: string | undefined;
  /** Whoever names a deployment means its NATS: NATS_URL does not count then. */
  readonly stack?: string | undefined;
  readonly dataFolder?: string | undefined;
}

/**
 * Finds NATS: `--nats`, then NATS_URL, then the local host that runs here, then `agents.yaml` (of a deployed stack its
 * outputs: stack-home.ts), then the usual port.
 * Credentials that the host or `agents.yaml` name go to no other servers than those named there.
 *
 * @throws CliError `usage` when a URL is none; `unreachable` when {@link knownNats} finds none
 */
export function findNats(options: NatsOptions, env: NodeJS.ProcessEnv, home: Home): Where {
  const where = knownNats(options, env, home);
  if (where !== undefined) return where;
  throw new CliError(
    EXIT.unreachable,
    `no local host runs in this folder, and at ${USUAL_SERVER} there may be another's: start Sluice with \`${home.start ?? USUAL_START}\`, or name a server with --nats`,
  );
}

/**
 * Where NATS is, as {@link findNats}; nothing where only the usual port is left, and the local host that would serve it
 * for this folder does not run: a task that is put there would go to another deployment.
 *
 * @throws CliError `usage` when a URL is none
 */
export function knownNats(options: NatsOptions, env: NodeJS.ProcessEnv, home: Home): Where | undefined {
  const isNamed = (options.stack ?? options.dataFolder) !== undefined;
  const fromEnv = isNamed ? undefined : env.NATS_URL || undefined;
  const named = urlsOf("--nats", options.nats) ?? urlsOf("NATS_URL", fromEnv);
  const known = home.host === undefined ? [home.operator] : [home.host, home.operator];
  const isAt = ({ servers }: Where) => named?.every((url) => servers.includes(url));
  const place: Where =
    named === undefined
      ? (home.host ?? home.operator)
      : { credentials: "none", ...known.find(isAt), servers: named };
  const isUsual = place.servers.every((url) => url === USUAL_SERVER);
  if (named === undefined && home.isStopped && isUsual) return undefined;
  const { creds, ca } = options;
  return {
    ...place,
    ...(isUsual && home.start !== undefined && { start: home.start }),
    ...(creds !== undefined && { credentials: `file:${creds}` }),
    ...(ca !== undefined && { ca }),
  };
}

function urlsOf(source: string, text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined;
  const read = readServerUrls(text);
  if ("urls" in read) return read.urls;
  throw new CliError(EXIT.usage, `${source}: ${read.wrong}`);
}

/**
 * Connects.
 *
 * @param deployment whose client this is
 * @param as whose permissions it needs (docs/nats.md): its inboxes have that name
 * @throws CliError `unreachable` when nobody answers or we are refused; `usage` when a file cannot be read
 */
export async function openNats(
  where: Where,
  deployment: string,
  as: "command" | "erase" = "command",
): Promise<NatsConnection> {
  const { servers, credentials } = where;
  const ca = where.ca === undefined ? undefined : readPem(where.ca);
  try {
    return await connectNats({ servers, credentials, ca, name: clientName(deployment, as) });
  } catch (cause) {
    if (!(cause instanceof NatsError)) throw cause;
    if (cause.code === "nats_credentials") throw new CliError(EXIT.usage, cause.message, { cause });
    const { says, todo } = natsTrouble(where, cause);
    throw new CliError(EXIT.unreachable, `${says}; ${todo}`, { cause });
  }
}

/** Verbs' own subjects that only `erase` needs are below these (docs/nats.md, "Permissions by function"). */
const ERASING = /^(\$JS\.API\.STREAM\.PURGE\.|\$O\.|_INBOX_sluice-[^.]*\.erase\.)/;

/** What to do when NATS does not let the command do something. */
export function permissionAdvice({ subject }: Pick<Refusal, "subject">): string {
  const of = ERASING.test(subject) ? "erase" : "command";
  return `log in as an operator's own user (--creds), or give this one what \`./sluice nats-permissions --function ${of}\` prints (docs/nats.md)`;
}

/** Why there is no connection, and what to do about it. */
export function natsTrouble({ servers, start }: Where, error: NatsError): { says: string; todo: string } {
  const at = servers.join(", ");
  return { says: `cannot reach NATS at ${at}: ${why(error)}`, todo: adviceOn(error, at, start) };
}

function adviceOn(error: NatsError, at: string, start = USUAL_START): string {
  if (error.code === "nats_refused") return "check --creds";
  // OpenSSL's and Node's words for a certificate that is not trusted, has expired, or is another server's.
  if (/certificate|altnames/i.test(why(error)))
    return "--ca (nats.tls.ca of agents.yaml) names the PEM file of the authority that signed the server's";
  // A server that somebody has named is another's business than `npm start`'s.
  return at === USUAL_SERVER
    ? `start Sluice with \`${start}\`, or name a server with --nats`
    : "see that a server runs there, or name another one with --nats (nats.servers of agents.yaml)";
}

function why(error: NatsError): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}

function readPem(path: string): string {
  const text = readText(path);
  // Node trusts nobody by a text without a certificate, and does not say why (Node.js: tls.createSecureContext, ca).
  if (!text.includes("-----BEGIN CERTIFICATE-----"))
    throw new CliError(EXIT.usage, `--ca ${path}: expected certificates as PEM text`);
  return text;
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new CliError(EXIT.usage, `--ca ${path}: cannot be read`, { cause });
  }
}
