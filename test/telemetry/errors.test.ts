import assert from "node:assert/strict";
import { test } from "node:test";
import * as whole from "zod";
import { errorFields } from "../../shared/telemetry/index.ts";
import * as mini from "../../shared/zod.ts";

/** What a function throws. */
function thrown(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

test("what does not have the expected shape is told on one short line, whichever zod says so", () => {
  const value = { a: { b: "secret" } };
  const errorMessage =
    "Invalid input: expected string, received undefined at c; Invalid input: expected number, received string at a.b";
  const shapes = [
    whole.object({ a: whole.object({ b: whole.number() }), c: whole.string() }),
    mini.object({ a: mini.object({ b: mini.number() }), c: mini.string() }),
  ];
  for (const shape of shapes)
    assert.deepEqual(errorFields(thrown(() => shape.parse(value))), { errorName: "ZodError", errorMessage });
});

test("what is no JSON is not quoted", () => {
  for (const text of ["my secret", "", '{"secret', "{secret:1}"])
    assert.deepEqual(errorFields(thrown(() => JSON.parse(text))), {
      errorName: "SyntaxError",
      errorMessage: "not JSON",
    });
});

test("any other error tells what it says, if it can", () => {
  assert.deepEqual(errorFields(new RangeError("far")), { errorName: "RangeError", errorMessage: "far" });
  assert.deepEqual(errorFields("far"), { errorName: "string", errorMessage: "far" });
  const silent = new Proxy(new Error(), {
    get() {
      throw new Error("no");
    },
  });
  assert.match(errorFields(silent).errorMessage, /does not say/);
});
