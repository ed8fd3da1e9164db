import assert from "node:assert/strict";
import { signRequest } from "../../../shared/http/sign.ts";
import { SignatureError, type SignatureProblem, type SignedRequest } from "../../../shared/http/verify.ts";
import { SECRET } from "./refused.ts";

export const NOW = 1_785_570_000_000;
export const NONCE = "AAECAwQFBgcICQoLDA0ODw";
export const key = { id: "acme-2026", secret: new TextEncoder().encode(`${SECRET}-`.repeat(5)) };
export const url = new URL("https://agents.example/a2a?stream=1&x=%2F");
export const request = { method: "POST", url, body: new TextEncoder().encode('{"jsonrpc":"2.0"}') };

/** The request, signed at a known time. */
export const sign = () => signRequest(request, key, { now: () => NOW, nonce: () => NONCE });

/** The request as it comes in, or another under the same signature. */
export function signed(headers: Record<string, string>, changes: Partial<SignedRequest> = {}): SignedRequest {
  return { ...request, headers: new Headers(headers), ...changes };
}

/** A memory of one process. */
export function memory() {
  const known = new Map<string, number>();
  return {
    known,
    async remember(keyId: string, nonce: string, untilMs: number) {
      const isNew = !known.has(`${keyId} ${nonce}`);
      known.set(`${keyId} ${nonce}`, untilMs);
      return isNew;
    },
  };
}

/** A verifier that knows the key and no nonce. */
export const options = (now = NOW) => ({
  keyOf: async (id: string) => (id === key.id ? key.secret : undefined),
  nonces: memory(),
  now: () => now,
});

/** Whether a request is not believed, for one of these reasons, and nothing is quoted. */
export const isProblem =
  (...problems: SignatureProblem[]) =>
  (error: unknown) => {
    assert.ok(error instanceof SignatureError, String(error));
    assert.ok(problems.includes(error.problem), `${error.problem}: ${error.message}`);
    assert.ok(!error.message.includes(SECRET));
    return true;
  };
