import { type AllowList, allowList } from "../http/allow-list.ts";
import { checkUrl } from "../http/destination.ts";
import { GuardedRequestError } from "../http/errors.ts";
import type { Finding } from "./config-error.ts";
import type { RemoteConfig } from "./remotes.ts";

/**
 * Remotes to which no request would ever go, by the rule of the client itself (docs/http.md): it is better told here than by
 * each request. What a name resolves to is not looked at.
 *
 * @param allowed the file's `outbound.allow`
 */
export function closedPlaces(remotes: readonly RemoteConfig[], allowed: readonly string[]): Finding[] {
  const allow = allowList(allowed);
  return remotes.flatMap(({ url }, at) => {
    const message = refusal(url, allow);
    return message === undefined ? [] : [{ path: ["remotes", at, "url"], message }];
  });
}

function refusal(url: string, allow: AllowList): string | undefined {
  try {
    checkUrl(url, allow);
    return undefined;
  } catch (error) {
    if (!(error instanceof GuardedRequestError)) throw error;
    return error.reason === "private_address"
      ? "expected a host whose address is public, or one that outbound.allow has"
      : "expected https on port 443, or an origin that outbound.allow has";
  }
}
