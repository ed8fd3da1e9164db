import { readFile } from "node:fs/promises";
import type { Environment } from "../config/env.ts";
import type { RemoteConfig } from "../config/remotes.ts";
import { SecretError } from "../secrets/secrets.ts";
import { sparingSecrets } from "../secrets/sparing.ts";

/** Credentials of remote agents cannot be had. The message names agent and place, and nothing of what is there. */
export class RemoteCredentialsError extends Error {
  override readonly name = "RemoteCredentialsError";
  /** Whether they may be had at the next attempt without anybody's doing. */
  readonly passing: boolean;

  constructor(message: string, { passing = false }: { readonly passing?: boolean } = {}) {
    super(message);
    this.passing = passing;
  }
}

/** Where credentials are read from. */
export interface CredentialSources {
  readonly env: Environment;
  /** @param options.fresh past whatever was read before, within the source's own bounds */
  readonly secret: (name: string, options: { readonly fresh: boolean }) => Promise<string>;
  readonly file: (path: string) => Promise<string>;
}

/** One for all exchanges of a sandbox: an agent that refuses every one would have the secret read anew for each. */
const readSecret = sparingSecrets();

/** As the functions have them. */
export function credentialSources(env: Environment): CredentialSources {
  return { env, secret: readSecret, file: (path) => readFile(path, "utf8") };
}

/** What a function must be allowed, and told, to have the credentials of all remote agents. */
export interface CredentialPlaces {
  /** Names or ARNs of secrets. */
  readonly secrets: readonly string[];
  readonly files: readonly string[];
  readonly variables: readonly string[];
}

/** Where the credentials are, each place once. */
export function credentialPlaces(remotes: readonly RemoteConfig[]): CredentialPlaces {
  const of = (kind: string) => [
    ...new Set(
      remotes.flatMap(({ auth }) => {
        const place = placeOf(auth?.credentials ?? "");
        return place.kind === kind ? [place.name] : [];
      }),
    ),
  ];
  return { secrets: of("secret"), files: of("file"), variables: of("env") };
}

/**
 * Reads the credentials of all remote agents that have any, before anything is asked: one that is missing or empty would
 * make of every request one of nobody's, and so there is none without it.
 *
 * @param options.fresh whether a secret is asked for whatever was read before; a file always is
 * @returns by the agent's name; white space around a credential is not part of it
 * @throws RemoteCredentialsError that names each that is missing
 */
export async function readRemoteCredentials(
  remotes: readonly RemoteConfig[],
  sources: CredentialSources,
  { fresh = false }: { readonly fresh?: boolean } = {},
): Promise<ReadonlyMap<string, string>> {
  const read = await Promise.all(
    remotes.flatMap(({ name, auth }) =>
      auth === undefined ? [] : [readOne(name, textAt(auth.credentials, sources, fresh), auth.credentials)],
    ),
  );
  const missing = read.flatMap((of) => ("problem" in of ? [of] : []));
  if (missing.length > 0)
    throw new RemoteCredentialsError(missing.map(({ problem }) => problem).join("; "), {
      passing: missing.every(({ passing }) => passing),
    });
  return new Map(read.flatMap((of) => ("text" in of ? [[of.name, of.text] as const] : [])));
}

async function readOne(
  name: string,
  reading: Promise<string | undefined>,
  credentials: string,
): Promise<
  { readonly name: string; readonly text: string } | { readonly problem: string; readonly passing: boolean }
> {
  const problem = (what: string, passing = false) => ({
    problem: `credentials of the remote agent ${name}: ${what}`,
    passing,
  });
  try {
    const text = (await reading)?.trim();
    return text ? { name, text } : problem(`${credentials} is ${text === undefined ? "not there" : "empty"}`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    // Secrets Manager has not said that there is none, or that we may not have it.
    const passing = error instanceof SecretError && error.code === "secret_unreachable";
    return problem(`${credentials} cannot be read: ${reason}`, passing);
  }
}

async function textAt(
  credentials: string,
  { env, secret, file }: CredentialSources,
  fresh: boolean,
): Promise<string | undefined> {
  const { kind, name } = placeOf(credentials);
  if (kind === "secret") return await secret(name, { fresh });
  return kind === "file" ? await file(name) : env[name];
}

/** A kind and a name: the form was judged when the configuration was read (shared/config/remote-forms.ts). */
function placeOf(credentials: string): { readonly kind: string; readonly name: string } {
  const colon = credentials.indexOf(":");
  return { kind: credentials.slice(0, colon), name: credentials.slice(colon + 1) };
}
