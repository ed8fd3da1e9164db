import assert from "node:assert/strict";
import { test } from "node:test";
import { operatorName } from "../../cli/operator.ts";

test("who runs the command has a name, or a number where the machine has no name for it", () => {
  assert.equal(
    operatorName(() => "ada"),
    "ada",
  );
  const unknown = () => {
    throw new Error("A system error occurred: uv_os_get_passwd returned ENOENT (no such file or directory)");
  };
  assert.equal(operatorName(unknown), `user ${process.getuid?.()}`);
});
