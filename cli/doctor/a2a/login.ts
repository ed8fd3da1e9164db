import type { Login } from "../../../shared/nats/credentials.ts";
import { type Finding, ok, warning } from "../finding.ts";

const PART = "login at NATS";
const LOOPBACK = /^\w+:\/\/(localhost|127\.|\[::1\])/;
const TODO = "give the deployment a user of its own, by an nkey or a JWT, and TLS (docs/nats.md)";

/** How a client is known to NATS. */
function wayOf({ user, token, authenticator, tls }: Login): "nobody" | "password" | "token" | "key" {
  if (authenticator !== undefined || tls?.cert !== undefined) return "key";
  if (token !== undefined) return "token";
  return user === undefined ? "nobody" : "password";
}

const WORDS = {
  nobody: "nobody asks who we are",
  password: "by user and password",
  token: "by a token",
  key: "by a key of our own",
} as const;

/**
 * Whether others can speak as our agents, by how this command logs in. What the credentials are is not shown.
 *
 * @param at.servers where NATS is, as URLs
 * @param at.encrypted whether the server speaks by TLS alone
 */
export function loginFinding(
  login: Login,
  at: { readonly servers: readonly string[]; readonly encrypted: boolean },
): Finding {
  const way = wayOf(login);
  const says = `${WORDS[way]}${at.encrypted ? ", over TLS" : ""}`;
  // What does not leave this machine nobody else hears.
  if (at.servers.every((url) => LOOPBACK.test(url))) return ok(PART, says);
  if (way === "nobody")
    return warning(PART, `${says}: whoever reaches the server can speak as our agents`, TODO);
  if (!at.encrypted && way !== "key")
    return warning(PART, `${says}, which goes over the network as it is`, TODO);
  return ok(PART, says);
}
