import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, describe, test } from "node:test";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { startFauxqs } from "fauxqs";
import { awsSettings } from "../../infra/local/aws.ts";
import { MAX_INLINE_BYTES, s3Values, ValueGone } from "../../shared/tasks/values.ts";
import { memoryValues } from "../../shared/testing/memory-values.ts";

const TASK = "task_8463c7c504e9c3d38998774d";

const fauxqs = await startFauxqs({ port: 0, logger: false });
const s3 = new S3Client({ ...awsSettings(`http://127.0.0.1:${fauxqs.port}`), forcePathStyle: true });
await s3.send(new CreateBucketCommand({ Bucket: "values" }));
after(async () => {
  s3.destroy();
  await fauxqs.stop();
});

for (const [name, values] of [
  ["memory", memoryValues()],
  ["S3", s3Values({ bucket: "values", client: async () => s3 })],
] as const)
  describe(`values in ${name}`, () => {
    test("are found by their digest", async () => {
      for (const bytes of [new Uint8Array(), Uint8Array.of(0, 255, 10)]) {
        const ref = await values.put(TASK, bytes);
        const sha256 = createHash("sha256").update(bytes).digest("hex");
        assert.deepEqual(ref, { key: `values/${TASK}/${sha256}`, bytes: bytes.byteLength });
        assert.deepEqual(values.ref(TASK, sha256, bytes.byteLength), ref);
        assert.deepEqual(Uint8Array.from(await values.get(ref)), bytes);
      }
    });

    test("that are not there are told as gone", async () => {
      await assert.rejects(values.get(values.ref(TASK, "0".repeat(64), 1)), ValueGone);
    });

    test("stay in place up to a size", async () => {
      const fits = "é".repeat(MAX_INLINE_BYTES / 2);
      assert.deepEqual(await values.keep(TASK, fits), { text: fits });
      assert.equal(await values.text({ text: fits }), fits);
      const larger = await values.keep(TASK, `${fits}x`);
      assert.ok("ref" in larger && larger.ref.bytes === MAX_INLINE_BYTES + 1);
      assert.equal(await values.text(larger), `${fits}x`);
    });
  });
