import { type PeerStore, peersOver, type Stored } from "../cards/peer-store.ts";

/** What is known of peers, in memory. */
export function memoryPeers(): PeerStore {
  const texts = new Map<string, Stored<string>>();
  const isAt = (name: string, version: number) => (texts.get(name)?.version ?? 0) === version;
  return peersOver({
    all: async (prefix) => new Map([...texts].filter(([name]) => name.startsWith(prefix)).sort()),
    get: async (name) => texts.get(name),
    async put(name, text, version) {
      if (!isAt(name, version)) return false;
      texts.set(name, { version: version + 1, value: text });
      return true;
    },
    remove: async (name, version) => isAt(name, version) && texts.delete(name),
  });
}
