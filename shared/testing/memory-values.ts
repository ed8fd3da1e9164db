import { createHash } from "node:crypto";
import { MAX_INLINE_BYTES, ValueGone, type Values } from "../tasks/values.ts";

/** Values in memory, for tests. */
export interface MemoryValues extends Values {
  /** What is there, by key. */
  readonly objects: ReadonlyMap<string, Uint8Array>;
}

export function memoryValues(): MemoryValues {
  const objects = new Map<string, Uint8Array>();
  const values: MemoryValues = {
    objects,
    async put(taskId, bytes) {
      const ref = values.ref(taskId, createHash("sha256").update(bytes).digest("hex"), bytes.byteLength);
      objects.set(ref.key, Uint8Array.from(bytes));
      return ref;
    },
    ref: (taskId, sha256, bytes) => ({ key: `values/${taskId}/${sha256}`, bytes }),
    async get(ref) {
      const bytes = objects.get(ref.key);
      if (bytes === undefined) throw new ValueGone(ref.key);
      return Uint8Array.from(bytes);
    },
    async keep(taskId, text) {
      if (Buffer.byteLength(text) <= MAX_INLINE_BYTES) return { text };
      return { ref: await values.put(taskId, Buffer.from(text)) };
    },
    text: async (kept) =>
      "text" in kept ? kept.text : Buffer.from(await values.get(kept.ref)).toString("utf8"),
  };
  return values;
}
