import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT } from "../../infra/bundle.ts";
import { DOCS } from "./pages.ts";

const page = readFileSync(join(DOCS, "security.md"), "utf8");
const plain = (text: string) => text.replaceAll(/\s+/g, " ");
/** A test as the page names it: its file, and its name or the words by which what holds is found there. */
const named = Array.from(
  plain(page).matchAll(/`(test\/[\w/.-]+\.test\.ts)`: ([^|)]+?) ?(?=\||\)|;)|`(test\/[\w/.-]+\.test\.ts)`/g),
  ([, file, words, alone]) => ({ file: file ?? alone ?? "", words: words ?? "" }),
);

test("each test that the page names is there, under the name that it gives", () => {
  assert.ok(named.length >= 30);
  for (const { file, words } of named)
    assert.ok(plain(readFileSync(join(ROOT, file), "utf8")).includes(words), `${file}: ${words}`);
});

test("each row of what holds names its test", () => {
  const tables = page.split("| what holds | shown by |").slice(1);
  assert.equal(tables.length, 8);
  for (const table of tables) {
    const [rows = ""] = table.split("\n\n");
    for (const row of rows.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| ---")))
      assert.match(row, /\| `test\/[\w/.-]+\.test\.ts`: .+ \|$/);
  }
});
