import type { HttpLedger, NatsLedger, PeerFacts, Transport } from "./peer-facts.ts";
import { factsName as nameOf } from "./peer-keys.ts";
import { httpFacts, httpLedger, natsFacts, natsLedger } from "./peer-schemas.ts";

/** Something that is stored, and its number: each write makes the next. 0 is what is not there. */
export interface Stored<T> {
  readonly version: number;
  readonly value: T;
}

/** The ledger of each transport. */
export interface Ledgers {
  readonly nats: NatsLedger;
  readonly http: HttpLedger;
}

/** What is known of peers (docs/table.md, peers). Each write is on condition of what its writer has read. */
export interface PeerStore {
  /** All facts of a transport's peers, by id; what cannot be read any more is left out. */
  facts(transport: Transport): Promise<ReadonlyMap<string, Stored<PeerFacts>>>;
  /** The facts of one peer; nothing when there are none that can be read. */
  fact(transport: Transport, id: string): Promise<PeerFacts | undefined>;
  /** @param version that is to be replaced; 0 when none is there. @returns whether it was still so */
  putFacts(facts: PeerFacts, version: number): Promise<boolean>;
  /** @returns whether it was still so */
  forget(of: Pick<PeerFacts, "transport" | "id">, version: number): Promise<boolean>;
  /** The ledger; an empty one when none is there, or none that can be read any more. */
  ledger<T extends Transport>(transport: T): Promise<Stored<Ledgers[T]>>;
  /** @returns whether it was still so */
  putLedger<T extends Transport>(transport: T, ledger: Ledgers[T], version: number): Promise<boolean>;
}

/** Texts under names, each with the number of its state. */
export interface PeerTexts {
  /** All whose names begin so, by name. */
  all(prefix: string): Promise<ReadonlyMap<string, Stored<string>>>;
  get(name: string): Promise<Stored<string> | undefined>;
  /** Puts the next state. @param version of the one before; 0 when there is none. @returns whether it was still so */
  put(name: string, text: string, version: number): Promise<boolean>;
  /** @returns whether it was still so */
  remove(name: string, version: number): Promise<boolean>;
}

const ledgerOf = (transport: Transport) => `ledger#${transport}`;

/** The store over wherever texts can be kept. */
export function peersOver(texts: PeerTexts): PeerStore {
  return {
    async facts(transport) {
      const all = await texts.all(`${transport}#`);
      return new Map(
        [...all.values()].flatMap(({ version, value }) => {
          const read = readFacts(transport, value);
          return read === undefined ? [] : [[read.id, { version, value: read }] as const];
        }),
      );
    },
    async fact(transport, id) {
      const found = await texts.get(nameOf({ transport, id }));
      return found === undefined ? undefined : readFacts(transport, found.value);
    },
    putFacts: (facts, version) => texts.put(nameOf(facts), JSON.stringify(facts), version),
    forget: (of, version) => texts.remove(nameOf(of), version),
    async ledger(transport) {
      const found = await texts.get(ledgerOf(transport));
      return { version: found?.version ?? 0, value: readLedger[transport](found?.value) };
    },
    putLedger: (transport, ledger, version) =>
      texts.put(ledgerOf(transport), JSON.stringify(ledger), version),
  };
}

/** Reads what was stored of a peer; nothing where it cannot be read any more. */
export function readFacts(transport: Transport, text: string): PeerFacts | undefined {
  const read = (transport === "nats" ? natsFacts() : httpFacts()).safeParse(parsed(text));
  return read.success ? read.data : undefined;
}

const NOBODY: NatsLedger = { lookedAt: 0, sightings: [], amiss: [] };
const readLedger: { readonly [T in Transport]: (text: string | undefined) => Ledgers[T] } = {
  nats: (text) => natsLedger().safeParse(parsed(text)).data ?? NOBODY,
  http: (text) => httpLedger().safeParse(parsed(text)).data ?? { standings: [] },
};

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
