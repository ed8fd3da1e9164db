import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { REASONS } from "../../shared/policy/choosing/reasons.ts";
import { DOCS } from "./pages.ts";

const OF = { request: "a request", agent: "an agent", either: "both" };

test("the page on choosing has each reason with what it means and what to do, and no other", () => {
  const [, section = ""] = readFileSync(join(DOCS, "choosing.md"), "utf8").split("## Reasons\n");
  const rows = Array.from(section.matchAll(/^\| `(\w+)` \| (.*) \|$/gm), ([, name = "", rest = ""]) => [
    name,
    ...rest.split(" | "),
  ]);
  assert.deepEqual(
    rows,
    Object.entries(REASONS).map(([name, { of, meaning, remedy }]) => [name, OF[of], meaning, remedy]),
  );
});
