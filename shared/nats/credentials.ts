import { readFile } from "node:fs/promises";
import { type ConnectionOptions, credsAuthenticator, nkeyAuthenticator } from "@nats-io/transport-node";
import * as z from "zod";
import { NatsError } from "./errors.ts";

type Login = Pick<ConnectionOptions, "authenticator" | "token" | "user" | "pass">;

const userAndPassword = z.strictObject({ user: z.string().min(1), password: z.string() });

/**
 * How to log in to NATS, from a deployment's `credentials`.
 *
 * @param credentials `none`, or `file:PATH` of a file that holds either credentials as NATS tools write them (`.creds`:
 *   JWT and seed), an nkey user seed (`SU…`), JSON `{"user": …, "password": …}`, or a bare token
 * @throws NatsError `nats_credentials` when the file cannot be read or is none of these
 */
export async function readCredentials(credentials: string): Promise<Login> {
  if (credentials === "none") return {};
  if (credentials.startsWith("file:"))
    return parseCredentials(await readText(credentials.slice(5)), credentials);
  if (credentials.startsWith("secret:"))
    throw new NatsError(
      "nats_credentials",
      `NATS credentials "${credentials}": secrets are not supported yet; use file:PATH or none`,
    );
  throw new NatsError("nats_credentials", `NATS credentials: expected none, file:PATH or secret:NAME`);
}

/**
 * Reads the text of a credentials file.
 *
 * @param source what to call it in an error; the text itself never appears in one
 */
export function parseCredentials(text: string, source: string): Login {
  const content = text.trim();
  if (content.includes("-----BEGIN NATS USER JWT-----"))
    return { authenticator: credsAuthenticator(new TextEncoder().encode(text)) };
  if (/^SU[A-Z2-7]{56}$/.test(content))
    return { authenticator: nkeyAuthenticator(new TextEncoder().encode(content)) };
  if (content.startsWith("{")) return parseUserAndPassword(content, source);
  if (/^\S+$/.test(content)) return { token: content };
  throw new NatsError(
    "nats_credentials",
    `NATS credentials ${source}: expected a .creds file, an nkey user seed, {"user", "password"} or a token`,
  );
}

function parseUserAndPassword(content: string, source: string): Login {
  const parsed = userAndPassword.safeParse(parseJson(content));
  if (parsed.success) return { user: parsed.data.user, pass: parsed.data.password };
  throw new NatsError(
    "nats_credentials",
    `NATS credentials ${source}: expected JSON {"user": string, "password": string} and nothing else`,
  );
}

function parseJson(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return undefined;
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new NatsError("nats_credentials", `NATS credentials file:${path}: cannot be read`, { cause });
  }
}
