import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { readHistory } from "./history.ts";
import { MUTATIONS } from "./mutations.ts";
import { INVARIANTS, STEPS, WITNESSES } from "./plan.ts";
import { explore } from "./quint.ts";

/** With it fifty histories reach every state of interest, and break what the mutations break. */
const SEED = 5;

function mutation(name: string) {
  const found = MUTATIONS.find((one) => one.name === name);
  assert.ok(found);
  return found;
}

// The long form is `npm run model` (docs/model.md).
describe("the model of the protocol", { concurrency: 2 }, () => {
  it("keeps its invariants, and reaches the states of interest", async () => {
    const asked = { step: "step", invariants: INVARIANTS, witnesses: WITNESSES } as const;
    const { broken, trace, witnessed } = await explore({
      ...asked,
      histories: 50,
      steps: STEPS.step,
      seed: SEED,
    });
    assert.deepEqual(broken, [], trace === undefined ? "" : readHistory(trace).join("\n"));
    const missed = WITNESSES.filter((name) => !((witnessed.get(name) ?? 0) > 0));
    assert.deepEqual(missed, []);
  });

  it("comes to an end once faults have stopped, whatever was before", async (t) => {
    const seed = randomInt(1_000_000_000);
    t.diagnostic(`seed ${seed}`);
    const asked = { step: "stepThenCalm", invariants: INVARIANTS, histories: 30 } as const;
    const { broken, trace } = await explore({ ...asked, steps: STEPS.stepThenCalm, seed });
    assert.deepEqual(broken, [], trace === undefined ? "" : readHistory(trace).join("\n"));
  });

  for (const { name, breaks, what } of [mutation("takeover-unfenced"), mutation("ack-first")])
    it(`breaks ${breaks} when ${what}`, async () => {
      const asked = { wrong: name, step: "step", invariants: [breaks], histories: 50 } as const;
      const { broken, trace = "" } = await explore({ ...asked, steps: STEPS.step, seed: SEED });
      assert.deepEqual(broken, [breaks]);
      assert.match(readHistory(trace).join("\n"), /^published: .*\n {2}1 {2}\w+/);
    });

  it("knows every mutation that its specification has, and no other", () => {
    const folder = import.meta.dirname;
    const text = globSync("*.qnt", { cwd: folder })
      .map((file) => readFileSync(join(folder, file), "utf8"))
      .join("\n");
    const inSpecification = new Set([...text.matchAll(/\bwrong [!=]= "([a-z-]+)"/g)].map(([, name]) => name));
    assert.deepEqual([...inSpecification].sort(), MUTATIONS.map(({ name }) => name).sort());
  });

  it("is documented: every invariant and every mutation", () => {
    const page = readFileSync(join(import.meta.dirname, "../../docs/model.md"), "utf8");
    for (const name of INVARIANTS) assert.match(page, new RegExp(`^\\| \`${name}\` \\|`, "m"));
    for (const { name, breaks } of MUTATIONS)
      assert.match(page, new RegExp(`^\\| \`${name}\` \\| .* \\| \`${breaks}\` \\|$`, "m"));
  });
});
