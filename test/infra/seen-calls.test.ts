import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as z from "zod";
import { FUNCTION_NAMES } from "../../infra/bundle.ts";
import { type Call, callsOf } from "./support/calls.ts";

/**
 * `seen-calls.json` lists what each function asked AWS for in the end-to-end runs; `npm run seen-calls` writes it anew.
 * What a function can do according to its code (grants.test.ts) is held against it.
 */
const seen = z
  .partialRecord(z.enum(FUNCTION_NAMES), z.array(z.string()))
  .parse(JSON.parse(readFileSync(new URL("seen-calls.json", import.meta.url), "utf8")));

const VALUES_READ: readonly Call[] = ["s3:GetObject values", "s3:ListBucket bucket"];

/** What these runs make no function do: what happens only when something else has gone wrong. */
const UNSEEN: Readonly<Partial<Record<keyof typeof seen, readonly Call[]>>> = {
  // A place in the line whose task has just left it is cleared by who hands a slot on; here `sweep` and `work` are first.
  control: ["dynamodb:ConditionCheckItem table"],
  // A large event of a task's own is published by `events` only if its worker has died before it could: `sweep` is first.
  events: VALUES_READ,
  // On one machine the key is in the data folder; test/functions/cards/agent-cards.test.ts makes one in a secret.
  cards: ["secretsmanager:PutSecretValue key"],
};

/** The deployment that the tests run logs in to NATS without one; test/nats/secrets.test.ts reads some. */
const SECRET: Call = "secretsmanager:GetSecretValue secret";

for (const name of FUNCTION_NAMES)
  test(`${name} was seen to do all that it can do but what is listed, and nothing else`, async () => {
    const expected = [...(seen[name] ?? []), ...(UNSEEN[name] ?? []), SECRET];
    assert.deepEqual(await callsOf(`${name}/handler.ts`), expected.toSorted());
  });
