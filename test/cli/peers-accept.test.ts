import assert from "node:assert/strict";
import { test } from "node:test";
import { noCard } from "../../cli/peers/accept.ts";

test("who has no card is told apart from who is not there", () => {
  const of = { carded: ["elder"], asked: ["elder", "auditor"] };
  assert.match(
    noCard("auditor", of).message,
    /^auditor: no card of it was had yet, .* \.\/sluice peers auditor tells why$/,
  );
  assert.equal(noCard("audtor", of).message, 'no remote agent "audtor"; did you mean auditor?');
  assert.equal(noCard("zebra", of).message, 'no remote agent "zebra"; there are elder, auditor');
});
