import type { DeploymentConfig } from "../config/deployment.ts";
import type { RemoteConfig } from "../config/remotes.ts";
import { allowList, correlationHeaders, RequestCredentialError } from "../http/index.ts";
import { type CredentialSources, RemoteCredentialsError } from "./credentials.ts";
import type { SendRequest } from "./request.ts";
import { openWay } from "./way.ts";

/** How requests for cards reach the remote agents, and for which of them that cannot be. */
export interface Ways {
  readonly sendTo: (remote: RemoteConfig) => SendRequest;
  /** By name: who we are there cannot be told, so that nothing is sent to them. */
  readonly missing: ReadonlyMap<string, Error>;
}

/**
 * Opens the ways to the remote agents: the guarded client, with who we are to each, and the operator's headers.
 *
 * @param of.correlationId under which all requests of a run can be found on the other side
 */
export async function waysTo(
  remotes: readonly RemoteConfig[],
  of: {
    readonly outbound: DeploymentConfig["outbound"];
    readonly sources: CredentialSources;
    readonly correlationId: string;
  },
): Promise<Ways> {
  const allow = allowList(of.outbound?.allow ?? []);
  const correlation = correlationHeaders(of);
  const ways = await Promise.all(
    remotes.map(async (remote) => {
      try {
        const fetch = await openWay(remote, { sources: of.sources, allow });
        const send: SendRequest = (url, { headers, signal }) =>
          fetch(url, { signal, headers: { ...lowerCased(remote.headers), ...headers, ...correlation } });
        return { name: remote.name, send };
      } catch (error) {
        return { name: remote.name, problem: problemOf(remote, error) };
      }
    }),
  );
  const found = new Map(ways.map(({ name, send, problem }) => [name, send ?? refusing(problem)]));
  return {
    sendTo: ({ name }) =>
      found.get(name) ?? refusing(new Error(`there is no way to the remote agent ${name}`)),
    missing: new Map(ways.flatMap(({ name, problem }) => (problem === undefined ? [] : [[name, problem]]))),
  };
}

const refusing =
  (problem: Error): SendRequest =>
  async () => {
    throw problem;
  };

function problemOf({ name }: RemoteConfig, error: unknown): Error {
  if (error instanceof RequestCredentialError)
    return new RemoteCredentialsError(`credentials of the remote agent ${name}: ${error.message}`);
  return error instanceof Error ? error : new Error(String(error));
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
