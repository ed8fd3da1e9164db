import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { NATS_PERMISSIONS } from "../../shared/nats/permissions.ts";
import { DOCS } from "./pages.ts";

test("the page's permissions are those that the command prints", () => {
  const page = readFileSync(join(DOCS, "nats.md"), "utf8");
  const [, section = ""] = /### Permissions by function\n([\s\S]*?)\n##/.exec(page) ?? [];
  const told = section.split("\n").filter((line) => line.startsWith("| `"));
  const lines = NATS_PERMISSIONS.map(({ subject, functions, why }) => {
    const names = functions.map((name) => `\`${name}\``).join(", ");
    return `| \`${subject}\` | ${names} | ${why} |`;
  });
  assert.deepEqual(told, lines);
});
