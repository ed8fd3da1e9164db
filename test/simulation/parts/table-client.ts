import {
  ProvisionedThroughputExceededException,
  TransactionCanceledException,
  TransactionConflictException,
} from "@aws-sdk/client-dynamodb";
import {
  BatchGetCommand,
  DeleteCommand,
  type DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  TransactWriteCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import * as z from "zod";
import type { Operation } from "../process.ts";
import type { Item } from "./expressions.ts";
import type { Key, Page, SimulatedTable, Write } from "./table.ts";

/** How a request reaches the table: at once, or when a history says so. */
export type Reach = <T>(operation: Operation<T>) => Promise<T>;

type Sent = Omit<Operation<unknown>, "silence" | "refusal">;

const key = z.object({ pk: z.string(), sk: z.string() });

/** A client whose requests reach a simulated table. Only what our stores send is understood. */
export function tableClient(table: SimulatedTable, reach: Reach): DynamoDBDocumentClient {
  const client = {
    send: (command: unknown) => {
      const transacts = command instanceof TransactWriteCommand;
      return reach({
        ...requestOf(table, command),
        silence: () => named("TimeoutError", "no answer from the table"),
        refusal: () => (transacts ? conflictOf(command) : refusalOf(command)),
      });
    },
  };
  // The stores call nothing of a client but `send`, whose overloads are one for each command.
  return client as unknown as DynamoDBDocumentClient;
}

function requestOf(table: SimulatedTable, command: unknown): Sent {
  if (command instanceof GetCommand) {
    const at = key.parse(command.input.Key);
    const read = () => ({ Item: table.get(at) });
    return { what: () => `reads ${nameOf(at)}`, writes: false, apply: read };
  }
  if (command instanceof BatchGetCommand) return batchOf(table, command);
  if (command instanceof QueryCommand) {
    const { input } = command;
    const by = input.ExpressionAttributeValues ?? {};
    const what = () =>
      `queries ${Object.values(by)
        .filter((value) => typeof value === "string")
        .join(" ")}`;
    // An index that learns late makes no promise about when it is asked.
    const anytime = input.IndexName !== undefined;
    return { what, writes: false, anytime, apply: (): Page => table.query(input) };
  }
  if (command instanceof TransactWriteCommand) {
    const writes = (command.input.TransactItems ?? []).map(transacted);
    // The SDK gives each request a token, by which a repeated one is known again.
    const token = Symbol("ClientRequestToken");
    return {
      what: () => `transacts ${writes.map(describe).join(" + ")}`,
      writes: true,
      apply: () => {
        table.transact(writes, token);
        return {};
      },
    };
  }
  const write = writeOf(command);
  return {
    what: () => describe(write),
    writes: true,
    apply: () => ({ Attributes: table.write(write) }),
  };
}

/** Of what is asked for DynamoDB may read a part: here it always leaves one out, where that leaves any. */
function batchOf(table: SimulatedTable, { input }: BatchGetCommand): Sent {
  const [[name, { Keys = [] }] = ["", {}]] = Object.entries(input.RequestItems ?? {});
  const keys = Keys.map((one) => key.parse(one));
  const read = keys.length > 1 ? keys.slice(0, -1) : keys;
  const left = keys.slice(read.length);
  return {
    what: () => `reads ${keys.map(nameOf).join(" + ")}`,
    writes: false,
    apply: () => ({
      Responses: { [name]: read.map((at) => table.get(at)).filter((item) => item !== undefined) },
      UnprocessedKeys: left.length > 0 ? { [name]: { Keys: left } } : {},
    }),
  };
}

function writeOf(command: unknown): Write {
  if (command instanceof PutCommand) {
    const { Item = {}, ...rest } = command.input;
    return { ...rest, kind: "put", item: defined(Item) };
  }
  if (command instanceof UpdateCommand) {
    const { Key, UpdateExpression = "", ...rest } = command.input;
    return { ...rest, kind: "update", key: key.parse(Key), update: UpdateExpression };
  }
  if (command instanceof DeleteCommand)
    return { ...command.input, kind: "delete", key: key.parse(command.input.Key) };
  throw new Error("the simulated table: a command that is not understood");
}

type Transacted = NonNullable<TransactWriteCommand["input"]["TransactItems"]>[number];

function transacted({ Put, Update, Delete, ConditionCheck }: Transacted): Write {
  if (Put !== undefined) return { ...Put, kind: "put", item: defined(Put.Item ?? {}) };
  if (Update !== undefined) {
    const { Key, UpdateExpression = "", ...rest } = Update;
    return { ...rest, kind: "update", key: key.parse(Key), update: UpdateExpression };
  }
  if (Delete !== undefined) return { ...Delete, kind: "delete", key: key.parse(Delete.Key) };
  if (ConditionCheck !== undefined)
    return { ...ConditionCheck, kind: "check", key: key.parse(ConditionCheck.Key) };
  throw new Error("the simulated table: a transaction with a write that is not understood");
}

/** As the client sends it: what is undefined is left out (`removeUndefinedValues`). */
function defined(item: Item): Item {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== undefined));
}

function refusalOf(command: unknown): Error {
  if (!(command instanceof UpdateCommand))
    return new ProvisionedThroughputExceededException({ $metadata: {}, message: "too many requests" });
  return new TransactionConflictException({ $metadata: {}, message: "a transaction is under way" });
}

function conflictOf(command: TransactWriteCommand): Error {
  const reasons = (command.input.TransactItems ?? []).map(() => ({ Code: "None" }));
  return new TransactionCanceledException({
    $metadata: {},
    message: "Transaction cancelled, please refer cancellation reasons for specific reasons",
    CancellationReasons: reasons.map((reason, index) =>
      index === 0 ? { Code: "TransactionConflict" } : reason,
    ),
  });
}

export function named(name: string, message: string): Error {
  return Object.assign(new Error(message), { name });
}

function nameOf({ pk, sk }: Key): string {
  return `${sk} of ${pk}`;
}

/** What a write says, for a reader. */
function describe(write: Write): string {
  if (write.kind === "put") return `puts ${nameOf(key.parse(write.item))} ${summary(write.item)}`;
  const changes = write.kind === "update" ? ` ${assigned(write)}` : "";
  return `${write.kind}s ${nameOf(write.key)}${changes}`;
}

const entryish = z.looseObject({
  epoch: z.number().optional(),
  beat: z.number().optional(),
  revision: z.number().optional(),
  state: z.string().optional(),
  claim: z.boolean().optional(),
  steps: z.array(z.object({ name: z.string() })).optional(),
  opens: z.array(z.object({ name: z.string() })).optional(),
  answer: z.object({ step: z.string() }).optional(),
  heard: z.object({ step: z.string() }).optional(),
  control: z.object({ kind: z.string() }).optional(),
  events: z.array(z.object({ kind: z.string(), revision: z.number() })).optional(),
  end: z.object({ state: z.string() }).optional(),
});

function summary(item: Item): string {
  const { epoch, revision, state, claim, steps, opens, answer, heard, control, events, end } =
    entryish.parse(item);
  const names = (of: readonly { readonly name: string }[] | undefined) =>
    of?.map(({ name }) => name).join(" ");
  const facts: readonly (readonly [string, string | number | undefined])[] = [
    ["epoch", epoch],
    ["revision", revision],
    ["", state],
    ["", claim === true ? "takeover" : undefined],
    ["steps", names(steps)],
    ["opens", names(opens)],
    ["answers", answer?.step],
    ["heard of", heard?.step],
    ["by", control?.kind],
    ["events", events?.map(({ kind, revision: of }) => `${of} ${kind}`).join(", ")],
    ["end", end?.state],
  ];
  return facts.flatMap(([name, value]) => (value === undefined ? [] : `${name} ${value}`.trim())).join(" · ");
}

/** The values that an update sets, and what it asks for. */
function assigned({ update, ConditionExpression, ...of }: Extract<Write, { kind: "update" }>): string {
  const values = of.ExpressionAttributeValues ?? {};
  const names = of.ExpressionAttributeNames ?? {};
  const plain = (text: string) =>
    text
      .replace(/[:#]\w+/g, (word) => names[word] ?? shown(values[word]) ?? word)
      .replace(/ AND \(?\w+ IN \([^)]*\)/g, "");
  return `${plain(update)}${ConditionExpression === undefined ? "" : ` if ${plain(ConditionExpression)}`}`;
}

function shown(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (value instanceof Set) return `{${[...value].join(" ")}}`;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
