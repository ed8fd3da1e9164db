/** Requests that go out over HTTP, and who they come from (docs/http.md, docs/hmac.md). */
export { allowList, MAX_ALLOWED, NOTHING_ALLOWED } from "./allow-list.ts";
export { requireOk } from "./answer.ts";
export { authorization, type RequestCredential, RequestCredentialError } from "./authorization.ts";
export { correlationHeaders } from "./correlation.ts";
export { checkDestination, checkUrl } from "./destination.ts";
export { GuardedRequestError, type GuardedRequestReason } from "./errors.ts";
export { type GuardOptions, guardedFetch } from "./guarded-fetch.ts";
