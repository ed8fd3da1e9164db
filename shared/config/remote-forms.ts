import * as z from "../zod.ts";

/**
 * What texts of the section `remotes` look like, as checks that are made when they are used: the operator's file is
 * read with them (remotes.ts), and the functions read with them what they are told (bundled.ts).
 */

/** Remote agents are named like our own, for a task's target may be either. */
export const REMOTE_NAME_FORM =
  "expected a name: 1 to 64 of A-Z, a-z, 0-9, _ and -, a letter or a digit first";
export const remoteName = z.whenUsed(() => z.regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, REMOTE_NAME_FORM));

/** Bytes of a URL that no server and no proxy on the way finds too long (RFC 9110 §4.1 asks for 8,000). */
const LONGEST_URL = 2_048;
export const REMOTE_URL_FORM = `expected a URL https://HOST/PATH or http://HOST/PATH of at most ${LONGEST_URL} characters`;

/**
 * Where a remote agent is. There is no place in it for a secret, for it goes into logs and onto screens: neither in
 * front of the host nor in a query.
 */
export const remoteUrl = z.whenUsed(
  () =>
    [
      z.refine<string>(
        (url) => url.length <= LONGEST_URL && /^https?:\/\/[^\s/]/.test(url) && URL.canParse(url),
        {
          error: REMOTE_URL_FORM,
          abort: true,
        },
      ),
      z.refine<string>((url) => !/^https?:\/\/[^/?#]*@/.test(url), {
        error: "expected a URL without user and password: a secret goes into auth.credentials",
        abort: true,
      }),
      z.refine<string>((url) => !/[?#\\]/.test(url), {
        error: "expected a URL without query, fragment and backslash: a secret goes into auth.credentials",
        abort: true,
      }),
      z.refine<string>((url) => isHost(hostIn(url)), {
        error: "expected a URL whose host is a name or an address, in ASCII and as it is usually written",
      }),
    ] as const,
);

/** A name of a process's environment (POSIX.1-2024, Base Definitions, 8.1). */
const VARIABLE = "[A-Za-z_][A-Za-z0-9_]{0,127}";
export const variableName = z.whenUsed(() =>
  z.regex(
    new RegExp(`^${VARIABLE}$`),
    "expected the name of an environment variable: 1 to 128 of A-Z, a-z, 0-9 and _, no digit first",
  ),
);

/**
 * Where a remote agent's credentials are: as those of NATS (forms.ts), or in a variable; without any there is no `auth`.
 */
export const REMOTE_CREDENTIALS_FORM = "expected secret:NAME, file:PATH or env:NAME";
export const remoteCredentials = z.whenUsed(() =>
  z.regex(
    new RegExp(`^(file:\\S.*|secret:(?!S[A-Z][A-Z2-7]{56}$)[A-Za-z0-9/_+=.@!:-]{1,2048}|env:${VARIABLE})$`),
    REMOTE_CREDENTIALS_FORM,
  ),
);

/** RFC 9110 §5.6.2, token. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;

/**
 * Headers that a request has of us, of its credentials or of the connection (RFC 9110 §7.6.1): a fixed value would be
 * a lie there, or a secret in a file that is bundled.
 */
const OURS = new Set(
  "accept accept-encoding authorization connection content-encoding content-length content-type cookie expect forwarded host if-match if-modified-since if-none-match keep-alive origin proxy-authorization proxy-connection range referer te trailer transfer-encoding traceparent tracestate upgrade user-agent via x-api-key x-correlation-id x-parent-id a2a-version".split(
    " ",
  ),
);
/** Those of the signature that `hmac` makes. */
const OURS_AT_FRONT = /^x-sluice-/;

export const headerName = z.whenUsed(
  () =>
    [
      z.regex(TOKEN, {
        error: "expected a header's name: 1 to 128 characters of a token (RFC 9110)",
        abort: true,
      }),
      z.refine<string>((name) => !OURS.has(name.toLowerCase()) && !OURS_AT_FRONT.test(name.toLowerCase()), {
        error: "expected a header that is not set by Sluice itself; credentials go into auth",
      }),
    ] as const,
);

/** RFC 9110 §5.5, field-value, of ASCII alone, so that it is the same in every client. */
export const headerValue = z.whenUsed(() =>
  z.regex(
    /^(?! )[\x20-\x7E]{1,1024}(?<! )$/,
    "expected a header's value: 1 to 1024 printable characters of ASCII, no space around them",
  ),
);

/**
 * Ids of skills are anybody's (A2A 1.0 §4.4.5, AgentSkill). As text, for a pattern that stands in a start is checked with it,
 * and of the first with a class of Unicode that takes V8 half a millisecond.
 */
const SKILL_NAME = "^(?!\\s)[^\\p{C}]{1,128}(?<!\\s)$";
export const skillName = z.whenUsed(() =>
  z.regex(
    new RegExp(SKILL_NAME, "u"),
    "expected a skill's id: 1 to 128 characters without control characters and spaces around them",
  ),
);

/** The host as it stands in a URL, its case aside: a URL that was parsed has another for `0x7f.1`. */
function hostIn(url: string): string {
  return (/^https?:\/\/(\[[^\]/]*\]|[^/:]*)/.exec(url)?.[1] ?? "").toLowerCase();
}

/**
 * A host that reads the same to everybody: an address that is written in another way than the usual one (`127.1`,
 * `0x7f.0.0.1`) comes out of the URL as another text.
 */
function isHost(host: string): boolean {
  const isName = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/.test(
    host,
  );
  if (!isName && !/^\[[0-9a-f:.]+\]$/.test(host)) return false;
  return (
    URL.canParse(`http://${host}`) && (host.startsWith("[") || new URL(`http://${host}`).hostname === host)
  );
}
