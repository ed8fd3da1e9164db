import {
  type AttributeValue,
  ConditionalCheckFailedException,
  TransactionCanceledException,
} from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { type Context, condition, type Item, updated } from "./expressions.ts";

/** The table's index over `dueAt` (docs/table.md). */
const INDEX = { name: "due", hash: "dueShard", range: "dueAt" } as const;

export interface Key {
  readonly pk: string;
  readonly sk: string;
}

interface Expressions {
  readonly ConditionExpression?: string | undefined;
  readonly ExpressionAttributeNames?: Record<string, string> | undefined;
  readonly ExpressionAttributeValues?: Record<string, unknown> | undefined;
  readonly ReturnValuesOnConditionCheckFailure?: string | undefined;
}

/** One write, as a request of its own or within a transaction. */
export type Write = Expressions &
  (
    | { readonly kind: "put"; readonly item: Item }
    | { readonly kind: "update"; readonly key: Key; readonly update: string }
    | { readonly kind: "delete"; readonly key: Key }
    | { readonly kind: "check"; readonly key: Key }
  );

/** A query by the table's key or the index's. */
export interface Query extends Expressions {
  readonly IndexName?: string | undefined;
  readonly KeyConditionExpression?: string | undefined;
  readonly FilterExpression?: string | undefined;
  readonly ScanIndexForward?: boolean | undefined;
  readonly Limit?: number | undefined;
  readonly ExclusiveStartKey?: Item | undefined;
}

export interface Page {
  readonly Items: Item[];
  readonly LastEvaluatedKey?: Item;
}

/** Told of each change: the item before and after, either of which may be missing. */
export type Changed = (key: Key, before: Item | undefined, after: Item | undefined) => void;

/** Why a write is not made, and the item that is there if it was asked for. */
interface Failed {
  readonly Code: string;
  readonly Item?: Record<string, AttributeValue>;
}

/** What the index holds of an item. */
interface Indexed extends Key {
  readonly hash: unknown;
  readonly range: unknown;
}

/**
 * One table with one index, as DynamoDB promises it to a client that reads consistently: conditions, updates,
 * transactions, queries in order, and an index that learns later (test/simulation/parts/table.contract.test.ts runs the
 * store over it and over an emulator).
 */
export class SimulatedTable {
  /** Never changed in place, so that they may be handed out. */
  readonly #items = new Map<string, Map<string, Item>>();
  readonly #index = new Map<string, Indexed>();
  readonly #tokens = new Set<symbol>();
  readonly #changed: Changed;
  readonly #learn: (apply: () => void) => void;

  /** @param options.learn called with what the index is to learn, and when it pleases calls that */
  constructor(options: { changed?: Changed; learn?: (apply: () => void) => void } = {}) {
    this.#changed = options.changed ?? (() => {});
    this.#learn = options.learn ?? ((apply) => apply());
  }

  get({ pk, sk }: Key): Item | undefined {
    return this.#items.get(pk)?.get(sk);
  }

  /** All items of a partition, in order. */
  partition(pk: string): Item[] {
    const items = [...(this.#items.get(pk) ?? [])];
    return items.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item);
  }

  partitions(): IterableIterator<string> {
    return this.#items.keys();
  }

  /** When the first item of the index is due. */
  get nextDue(): number | undefined {
    let next: number | undefined;
    for (const { range } of this.#index.values())
      if (typeof range === "number" && range < (next ?? Number.POSITIVE_INFINITY)) next = range;
    return next;
  }

  /**
   * One write.
   *
   * @returns the item as it is afterwards
   * @throws ConditionalCheckFailedException
   */
  write(write: Write): Item | undefined {
    const failed = this.#check(write);
    if (failed !== undefined)
      throw new ConditionalCheckFailedException({
        $metadata: {},
        message: "The conditional request failed",
        ...(failed.Item && { Item: failed.Item }),
      });
    return this.#apply(write);
  }

  /**
   * All or nothing.
   *
   * @param token a second transaction under the same token changes nothing and succeeds (DynamoDB API:
   *   TransactWriteItems, ClientRequestToken)
   * @throws TransactionCanceledException
   */
  transact(writes: readonly Write[], token?: symbol): void {
    if (token !== undefined && this.#tokens.has(token)) return;
    const failed = writes.map((write) => this.#check(write));
    if (failed.some((one) => one !== undefined))
      throw new TransactionCanceledException({
        $metadata: {},
        message: "Transaction cancelled, please refer cancellation reasons for specific reasons",
        CancellationReasons: failed.map((one) => one ?? { Code: "None" }),
      });
    for (const write of writes) this.#apply(write);
    if (token !== undefined) this.#tokens.add(token);
  }

  query(query: Query): Page {
    const keyed = condition(query.KeyConditionExpression ?? "");
    const filter = query.FilterExpression === undefined ? undefined : condition(query.FilterExpression);
    const { ExpressionAttributeNames: names = {}, ExpressionAttributeValues: values = {} } = query;
    const holds = (item: Item) => keyed({ item, names, values });
    const found = query.IndexName === undefined ? this.#byKey(values, holds) : this.#byIndex(holds);
    if (query.ScanIndexForward === false) found.reverse();
    const from = query.ExclusiveStartKey;
    const start =
      from === undefined ? 0 : found.findIndex(({ pk, sk }) => pk === from.pk && sk === from.sk) + 1;
    const page = found.slice(start, query.Limit === undefined ? undefined : start + query.Limit);
    const last = page.at(-1);
    const Items = filter === undefined ? page : page.filter((item) => filter({ item, names, values }));
    if (last === undefined || start + page.length >= found.length) return { Items };
    return { Items, LastEvaluatedKey: { pk: last.pk, sk: last.sk } };
  }

  /** The partition is named by one of the values: all of ours are names of items' partitions. */
  #byKey(values: Readonly<Record<string, unknown>>, holds: (item: Item) => boolean): Item[] {
    const pk = Object.values(values).find((value) => typeof value === "string" && this.#items.has(value));
    return typeof pk === "string" ? this.partition(pk).filter(holds) : [];
  }

  #byIndex(holds: (item: Item) => boolean): Item[] {
    const found = [...this.#index.values()].filter(({ hash, range }) =>
      holds({ [INDEX.hash]: hash, [INDEX.range]: range }),
    );
    return found.sort((a, b) => Number(a.range) - Number(b.range)).map(({ pk, sk }) => ({ pk, sk }));
  }

  #check(write: Write): Failed | undefined {
    const there = this.get(keyOf(write));
    if (write.ConditionExpression === undefined) return undefined;
    if (condition(write.ConditionExpression)(contextOf(write, there))) return undefined;
    const wanted = write.ReturnValuesOnConditionCheckFailure === "ALL_OLD" && there !== undefined;
    return {
      Code: "ConditionalCheckFailed",
      ...(wanted && { Item: marshall(there, { removeUndefinedValues: true }) }),
    };
  }

  #apply(write: Write): Item | undefined {
    const key = keyOf(write);
    const before = this.get(key);
    if (write.kind === "check") return before;
    const after = afterwards(write, before);
    const { pk, sk } = key;
    const partition = this.#items.get(pk) ?? new Map<string, Item>();
    this.#items.set(pk, partition);
    if (after === undefined) partition.delete(sk);
    else partition.set(sk, after);
    this.#keepIndex(key, before, after);
    this.#changed(key, before, after);
    return after;
  }

  #keepIndex({ pk, sk }: Key, before: Item | undefined, after: Item | undefined): void {
    const [hash, range] = [after?.[INDEX.hash], after?.[INDEX.range]];
    if (before?.[INDEX.hash] === hash && before?.[INDEX.range] === range) return;
    const at = `${pk} ${sk}`;
    this.#learn(() => {
      if (hash === undefined || range === undefined) this.#index.delete(at);
      else this.#index.set(at, { pk, sk, hash, range });
    });
  }
}

function keyOf(write: Write): Key {
  if (write.kind !== "put") return write.key;
  return { pk: String(write.item.pk), sk: String(write.item.sk) };
}

function contextOf(of: Expressions, item: Item | undefined): Context {
  return {
    item,
    names: of.ExpressionAttributeNames ?? {},
    values: of.ExpressionAttributeValues ?? {},
  };
}

function afterwards(write: Exclude<Write, { kind: "check" }>, before: Item | undefined): Item | undefined {
  if (write.kind === "delete") return undefined;
  if (write.kind === "put") return write.item;
  return updated(write.update, contextOf(write, { ...before, ...write.key }));
}
