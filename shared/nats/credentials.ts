import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import {
  type Authenticator,
  type ConnectionOptions,
  credsAuthenticator,
  nkeyAuthenticator,
} from "@nats-io/transport-node";
import { readSecret } from "../secrets/secrets.ts";
import * as z from "../zod.ts";
import { NatsError } from "./errors.ts";

/** Whom the server trusts, and who we are to it, as PEM text. */
interface TlsTexts {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** How to log in to NATS. */
export interface Login extends Pick<ConnectionOptions, "authenticator" | "token" | "user" | "pass"> {
  readonly tls?: TlsTexts;
}

const SEED = /^SU[A-Z2-7]{56}$/;
const JWT_BEGIN = "-----BEGIN NATS USER JWT-----";
const loginJson = z.whenUsed(() => {
  const certificate = z.string().check(z.includes("-----BEGIN CERTIFICATE-----"));
  return z
    .strictObject({
      user: z.optional(z.string().check(z.minLength(1))),
      password: z.optional(z.string()),
      token: z.optional(z.string().check(z.minLength(1))),
      nkey: z.optional(z.string().check(z.trim(), z.regex(SEED))),
      creds: z.optional(z.string().check(z.includes(JWT_BEGIN))),
      ca: z.optional(certificate),
      cert: z.optional(certificate),
      key: z.optional(z.string().check(z.includes("PRIVATE KEY-----"))),
    })
    .check(
      z.refine(({ user, password }) => (user === undefined) === (password === undefined)),
      z.refine(({ cert, key }) => (cert === undefined) === (key === undefined)),
      z.refine(({ user, token, nkey, creds, cert }) => {
        const ways = [user, token, nkey, creds].filter((way) => way !== undefined).length;
        // A server may know its clients by their certificates alone (NATS docs: "TLS authentication").
        return ways === 1 || (ways === 0 && cert !== undefined);
      }),
    );
});

/** The secret that credentials name, if they name one. */
export function secretOf(credentials: string): string | undefined {
  return credentials.startsWith("secret:") ? credentials.slice("secret:".length) : undefined;
}

/**
 * How to log in to NATS, from a deployment's `credentials`.
 *
 * @param credentials `none`; `file:PATH` of a file; or `secret:NAME`, name or ARN of a secret in AWS Secrets Manager. Both hold
 *   either credentials as NATS tools write them (`.creds`: JWT and seed), an nkey user seed (`SU…`), a bare token, or JSON:
 *   one of `user` and `password`, `token`, `nkey`, `creds`; and, as PEM text, `ca`, `cert` and `key`
 * @param options.fresh a secret is read again, whatever was read before
 * @throws NatsError `nats_credentials` when they cannot be read or are none of these
 */
export async function readCredentials(
  credentials: string,
  options: { readonly fresh?: boolean } = {},
): Promise<Login> {
  if (credentials === "none") return {};
  const secret = secretOf(credentials);
  if (secret !== undefined) return parseCredentials(await secretText(secret, options), credentials);
  if (credentials.startsWith("file:"))
    return parseCredentials(await fileText(credentials.slice("file:".length)), credentials);
  throw new NatsError("nats_credentials", `NATS credentials: expected none, file:PATH or secret:NAME`);
}

/**
 * Reads the text of credentials.
 *
 * @param source what to call it in an error; the text itself never appears in one
 */
export function parseCredentials(text: string, source: string): Login {
  const content = text.trim();
  if (content.startsWith("{")) return parseJsonLogin(content, source);
  if (content.includes(JWT_BEGIN)) return { authenticator: credsLogin(text, source) };
  if (SEED.test(content)) return { authenticator: nkeyLogin(content, source) };
  if (/^\S+$/.test(content)) return { token: content };
  throw new NatsError(
    "nats_credentials",
    `NATS credentials ${source}: expected a .creds file, an nkey user seed, JSON such as {"user", "password"}, or a token`,
  );
}

function parseJsonLogin(content: string, source: string): Login {
  const parsed = loginJson().safeParse(parseJson(content));
  if (!parsed.success)
    throw new NatsError(
      "nats_credentials",
      `NATS credentials ${source}: expected JSON with user and password, or one of token, nkey and creds; if need be with ca, or with cert and key, as PEM text; and nothing else`,
    );
  const { user, password, token, nkey, creds, ca, cert, key } = parsed.data;
  return {
    ...(user !== undefined && password !== undefined && { user, pass: password }),
    ...(token !== undefined && { token }),
    ...(nkey !== undefined && { authenticator: nkeyLogin(nkey, source) }),
    ...(creds !== undefined && { authenticator: credsLogin(creds, source) }),
    ...((ca ?? cert) !== undefined && {
      tls: readable(
        {
          ...(ca !== undefined && { ca }),
          ...(cert !== undefined && key !== undefined && { cert, key }),
        },
        source,
      ),
    }),
  };
}

/** What is damaged is found here, and not taken for a server that cannot be reached. */
function readable(tls: TlsTexts, source: string): TlsTexts {
  try {
    for (const text of [tls.ca, tls.cert]) if (text !== undefined) new X509Certificate(text);
    createSecureContext(tls);
    return tls;
  } catch {
    // The cause might quote what it could not read.
    const what = tls.cert === undefined ? "ca" : "ca, cert or key";
    throw new NatsError(
      "nats_credentials",
      `NATS credentials ${source}: ${what} in it is damaged${tls.cert === undefined ? "" : ", or the key is another certificate's"}`,
    );
  }
}

function nkeyLogin(seed: string, source: string): Authenticator {
  return tried(nkeyAuthenticator(new TextEncoder().encode(seed)), source, "the nkey user seed");
}

function credsLogin(creds: string, source: string): Authenticator {
  // The client wants an end of each line, and no other than this.
  const lines = `${creds.replaceAll("\r\n", "\n")}\n`;
  return tried(credsAuthenticator(new TextEncoder().encode(lines)), source, "the .creds text");
}

/** Signs something: what is damaged is found here, and not taken for a server that cannot be reached. */
function tried(authenticator: Authenticator, source: string, what: string): Authenticator {
  try {
    authenticator("nonce");
    return authenticator;
  } catch {
    // The cause might quote what it could not read.
    throw new NatsError("nats_credentials", `NATS credentials ${source}: ${what} in it is damaged`);
  }
}

function parseJson(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}

async function fileText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new NatsError("nats_credentials", `NATS credentials file:${path}: cannot be read`, { cause });
  }
}

async function secretText(secret: string, options: { readonly fresh?: boolean }): Promise<string> {
  try {
    return await readSecret(secret, options);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new NatsError("nats_credentials", `NATS credentials: ${reason}`, { cause });
  }
}
