import assert from "node:assert/strict";
import { GuardedRequestError, type GuardedRequestReason } from "../../../shared/http/index.ts";

/** What no error may quote: tests put it into paths, queries, headers and bodies. */
export const SECRET = "s3cr3t";

/** Whether an error is ours, for one of these reasons, and quotes nothing. */
export function refused(
  reasons: GuardedRequestReason | readonly GuardedRequestReason[],
  details: object = {},
) {
  return (error: unknown) => {
    assert.ok(error instanceof GuardedRequestError, String(error));
    assert.ok([reasons].flat().includes(error.reason), `${error.reason}: ${error.message}`);
    assert.equal(error.cause, undefined);
    assert.ok(!JSON.stringify([error.message, error]).includes(SECRET), error.message);
    const { status, code, host, sent, address } = error;
    assert.deepEqual(
      { status, code, host, sent, address, ...details },
      { status, code, host, sent, address },
    );
    return true;
  };
}
