/**
 * How requests reach a remote agent: a part of `fetch`, which the guarded client is (docs/http.md). It adds who we are,
 * bounds what comes, and sees to it that nothing is reached that must not be. What it throws says why, and quotes
 * neither credentials nor the answer.
 *
 * @param url absolute
 */
export type SendRequest = (
  url: string,
  options: { readonly headers: Record<string, string>; readonly signal: AbortSignal },
) => Promise<Response>;
