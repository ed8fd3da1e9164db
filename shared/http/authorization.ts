import { keyProblem, type SignableRequest } from "./signature.ts";

/** Who we are at an origin. */
export interface RequestAuthorization {
  /** As `URL.origin` has it. Nobody else is told. */
  readonly origin: string;
  /** The headers that say so, for each request anew; their names are in lower case. */
  headers(request: SignableRequest): Promise<Readonly<Record<string, string>>>;
}

/** A credential as it is kept, by its scheme (docs/http.md). */
export type RequestCredential =
  | { readonly scheme: "apiKey"; readonly key: string }
  | { readonly scheme: "bearer"; readonly token: string }
  | { readonly scheme: "hmac"; readonly keyId: string; readonly secret: string };

/** The longest API key or token. */
export const MAX_CREDENTIAL = 4_096;

/** A credential that cannot be used. The message names its scheme and never holds anything of it. */
export class RequestCredentialError extends Error {
  override readonly name = "RequestCredentialError";
}

/**
 * Who we are at a remote, by its scheme: `X-API-Key`, `Authorization: Bearer` (RFC 6750) or a signature (docs/hmac.md).
 * White space around a credential is not part of it: files end in a line break.
 *
 * @param origin the only origin that is told
 * @throws RequestCredentialError when there is none, or one that no header can carry
 */
export function authorization(origin: string, credential: RequestCredential): RequestAuthorization {
  switch (credential.scheme) {
    case "apiKey": {
      const key = headerText(credential.key, "an API key");
      return { origin, headers: async () => ({ "x-api-key": key }) };
    }
    case "bearer": {
      const token = headerText(credential.token, "a bearer token");
      return { origin, headers: async () => ({ authorization: `Bearer ${token}` }) };
    }
    case "hmac":
      return { origin, headers: signer(credential.keyId, credential.secret) };
  }
}

/** The signature's code is loaded only where one is made. */
function signer(id: string, text: string): RequestAuthorization["headers"] {
  const secret = new TextEncoder().encode(text.trim());
  const problem = keyProblem(id, secret);
  if (problem !== undefined) throw new RequestCredentialError(problem);
  return async (request) => (await import("./sign.ts")).signRequest(request, { id, secret });
}

/** What every server takes as a header's value: visible ASCII (RFC 9110 §5.5). */
function headerText(text: string, what: string): string {
  const value = text.trim();
  if (/^[\x21-\x7e]+$/.test(value) && value.length <= MAX_CREDENTIAL) return value;
  throw new RequestCredentialError(
    `expected ${what} of 1 to ${MAX_CREDENTIAL} visible ASCII characters, got a text of ${value.length} characters`,
  );
}
