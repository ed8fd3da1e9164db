import * as z from "../zod.ts";

/**
 * What texts of the configuration look like, as checks that are made when they are used: the operator's file is read with them (deployment.ts), and the
 * functions read with them what they are told (bundled.ts, env.ts).
 */

/** Ids as they stand in subjects (docs/wire.md, agent id). */
export const runtimeIdCheck = z.whenUsed(() =>
  z.regex(/^[A-Za-z0-9_-]{1,64}$/, "expected a runtime id: 1 to 64 of A-Z, a-z, 0-9, _ and -"),
);
export const runtimeOrAnyoneCheck = z.whenUsed(() =>
  z.regex(/^(\*|[A-Za-z0-9_-]{1,64})$/, "expected a runtime id (1 to 64 of A-Z, a-z, 0-9, _ and -) or *"),
);
/** Slugs of skills and channelRefs share one form (docs/wire.md, skill ids). */
export const slugCheck = z.whenUsed(() =>
  z.regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, "expected a slug: 1 to 64 of A-Z, a-z, 0-9, _ and -"),
);
/** Media types (RFC 6838 §4.2), or all of one kind. */
export const mimePatternCheck = z.whenUsed(() =>
  z.regex(
    /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/([a-z0-9][a-z0-9!#$&^_.+-]{0,126}|\*)$/,
    "expected a media type such as text/plain, or image/*",
  ),
);
export const DEPLOYMENT_NAME_FORM = "expected 1 to 32 of A-Z, a-z, 0-9, _ and -";
export const deploymentNameCheck = z.whenUsed(() => z.regex(/^[A-Za-z0-9_-]{1,32}$/, DEPLOYMENT_NAME_FORM));

/**
 * A secret's name as Secrets Manager has it (its API: CreateSecret, Name; `!` in those that AWS services make), or its
 * whole ARN: that ends in six characters of Secrets Manager's own (Secrets Manager User Guide, "Secret ARN"), without
 * which a grant would be for nothing.
 */
const NAME = "[A-Za-z0-9/_+=.@!-]{1,512}";
const SECRET = `(${NAME}|arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:${NAME}-[A-Za-z0-9]{6})`;
export const secretNameCheck = z.whenUsed(() =>
  z.regex(new RegExp(`^${SECRET}$`), "expected the name or the ARN of a secret in Secrets Manager"),
);

/** `none`, `file:PATH`, or `secret:` and a secret. An nkey's seed would pass for a name, and then stand in the outputs. */
export const credentialsCheck = z.whenUsed(() =>
  z.regex(
    new RegExp(`^(none|file:\\S.*|secret:(?!S[A-Z][A-Z2-7]{56}$)${SECRET})$`),
    "expected none, file:PATH or secret:NAME",
  ),
);

/** A URL goes into logs and onto screens, so there is no place in it for a password. */
export const serverUrlChecks = z.whenUsed(
  () =>
    [
      z.refine<string>((url) => !url.includes("@"), {
        error:
          "expected a URL without user and password: write them into a file, and name it as credentials (file:PATH; on a command line --creds PATH)",
        abort: true,
      }),
      z.regex(/^(nats|tls):\/\/[^\s/?#]+$/, {
        error: "expected a URL nats://HOST:PORT or tls://HOST:PORT",
        abort: true,
      }),
      z.refine<string>((url) => URL.canParse(url), {
        error: "expected a URL nats://HOST:PORT or tls://HOST:PORT with a port of at most 65535",
      }),
    ] as const,
);
