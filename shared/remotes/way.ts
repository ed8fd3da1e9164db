import type { RemoteConfig } from "../config/remotes.ts";
import type { AllowList } from "../http/allow-list.ts";
import type { GuardedFetch } from "../http/guarded-fetch.ts";
import { type CredentialSources, readRemoteCredentials } from "./credentials.ts";
import { remoteFetch } from "./exchange/remote-fetch.ts";

/**
 * What an agent answers that does not take us for whom we say we are (RFC 9110 §15.5.2), or says that we may not (§15.5.4),
 * as gateways do of a key that they do not know. Nothing was taken; with other credentials the same may be sent again.
 */
const REFUSALS: ReadonlySet<number> = new Set([401, 403]);

/** A credential, and the client that says it. */
interface Said {
  readonly credential: string | undefined;
  readonly fetch: GuardedFetch;
}

/**
 * Opens the way to a remote agent: the guarded client, with who we are there as it is read now. It is for one exchange, or one
 * round, so that nothing keeps a credential but what its source does (a secret, for ten minutes: shared/secrets/secrets.ts).
 *
 * An agent that refuses us may have been given another credential since: it is read anew, past what is kept, and if it is
 * another, the same request is sent once more with it.
 *
 * @throws RemoteCredentialsError, RequestCredentialError when there is no credential that can be used: nothing is sent then.
 *   One that cannot be read after a refusal leaves the refusal as the answer
 */
export async function openWay(
  remote: RemoteConfig,
  { sources, allow }: { readonly sources: CredentialSources; readonly allow: AllowList },
): Promise<GuardedFetch> {
  const read = async (fresh: boolean): Promise<Said> => {
    const credential = (await readRemoteCredentials([remote], sources, { fresh })).get(remote.name);
    return { credential, fetch: remoteFetch(remote, credential, { allow }) };
  };
  let current = await read(false);
  if (remote.auth === undefined) return current.fetch;
  return async (input, init) => {
    const said = current;
    const repeat = input instanceof Request ? input.clone() : input;
    const answer = await said.fetch(input, init);
    // A stream was used up by the first time.
    if (!REFUSALS.has(answer.status) || init?.body instanceof ReadableStream) return answer;
    const renewed = await read(true).catch(() => said);
    if (renewed.credential === said.credential) return answer;
    current = renewed;
    await answer.body?.cancel();
    return await renewed.fetch(repeat, init);
  };
}
