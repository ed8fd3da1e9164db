import type { RemoteConfig } from "../../config/remotes.ts";
import type { GuardedFetch } from "../../http/guarded-fetch.ts";
import {
  authorization,
  type GuardOptions,
  guardedFetch,
  type RequestCredential,
  RequestCredentialError,
} from "../../http/index.ts";

/**
 * The way to a remote agent: the guarded client (docs/http.md), with who we are there.
 *
 * @param credential as `readRemoteCredentials` gives it for this agent
 * @throws RequestCredentialError when `auth` asks for a credential and there is none, or none that can be used: nothing is
 *   ever sent as nobody's in its place
 */
export function remoteFetch(
  remote: Pick<RemoteConfig, "url" | "auth">,
  credential: string | undefined,
  options: Omit<GuardOptions, "authorization"> = {},
): GuardedFetch {
  if (remote.auth === undefined) return guardedFetch(options);
  if (!credential?.trim())
    throw new RequestCredentialError("expected a credential of the remote agent, got none");
  const { origin } = new URL(remote.url);
  return guardedFetch({
    ...options,
    authorization: authorization(origin, readCredential(remote.auth.scheme, credential.trim())),
  });
}

/** A credential as it is kept, by its scheme (docs/remotes.md, what an operator writes). */
function readCredential(
  scheme: NonNullable<RemoteConfig["auth"]>["scheme"],
  text: string,
): RequestCredential {
  switch (scheme) {
    case "apiKey":
      return { scheme, key: text };
    case "bearer":
      return { scheme, token: text };
    case "hmac": {
      const [keyId = "", secret, ...more] = text.split(/\s+/);
      if (secret === undefined || more.length > 0)
        throw new RequestCredentialError(
          "expected a key's id and its secret with a space between them to sign requests with",
        );
      return { scheme, keyId, secret };
    }
  }
}
