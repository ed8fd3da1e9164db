import type { ItemStore } from "../policy/choosing/items.ts";

/**
 * Items of one kind, in memory.
 *
 * @param reached waits before each request reaches them; a test may let others go first
 */
export function memoryItems<T>(reached: () => Promise<unknown> = async () => {}): ItemStore<T> {
  const items = new Map<string, { readonly value: T; readonly version: string }>();
  let writes = 0;
  return {
    async read(key) {
      await reached();
      return items.get(key);
    },
    async readAll(keys) {
      await reached();
      return new Map(
        keys.flatMap((key) => {
          const item = items.get(key);
          return item === undefined ? [] : [[key, item.value]];
        }),
      );
    },
    async write(key, value, { over }) {
      await reached();
      if (items.get(key)?.version !== over) return false;
      items.set(key, { value, version: String(++writes) });
      return true;
    },
  };
}
