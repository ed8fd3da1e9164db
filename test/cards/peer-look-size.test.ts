import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { FUNCTION_SIZES } from "../../infra/sizes.ts";
import { MAX_PEERS } from "../../shared/cards/peer-look.ts";

test("a look at as many and as large records as there may be has room in a sixth of the function's memory", async () => {
  const worker = new Worker(new URL("./support/full-look.ts", import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: FUNCTION_SIZES.cards.memoryMb / 6 },
  });
  const [kept] = await once(worker, "message");
  assert.equal(kept, MAX_PEERS);
  await worker.terminate();
});
