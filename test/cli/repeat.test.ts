import assert from "node:assert/strict";
import { test } from "node:test";
import { program } from "../../cli/main.ts";
import { waitText } from "../../cli/render.ts";
import { remember, repeatPlace, withPlace } from "../../cli/repeat.ts";

const called = (options: Record<string, unknown>) => remember(program(), { optsWithGlobals: () => options });

test("advice repeats the option that names the deployment, for verbs that take it", () => {
  called({ dataFolder: "/tmp/x/.sluice", json: true });
  const both = "./sluice dead redrive ID  sends it back; ./sluice dead drop ID  deletes it";
  const where = "--data-folder /tmp/x/.sluice";
  const told = `./sluice dead redrive ${where} ID  sends it back; ./sluice dead drop ${where} ID  deletes it`;
  assert.equal(repeatPlace(both), told);
  assert.equal(repeatPlace(told), told);
  const asks = { state: "TASK_STATE_INPUT_REQUIRED", taskKey: "task_1", to: "acme-cli" } as const;
  assert.equal(waitText(asks), `acme-cli must answer: ./sluice reply task_1 TEXT ${where}`);
  // What is repeated already is not repeated once more, as in an error that carries such advice.
  assert.equal(repeatPlace(waitText(asks)), waitText(asks));
  assert.equal(withPlace("./sluice dead drop ID"), `./sluice dead drop ID ${where}`);

  called({ stack: "sluice-acme" });
  assert.equal(repeatPlace("see ./sluice dead list"), "see ./sluice dead list --stack sluice-acme");
  assert.equal(repeatPlace("./sluice resume exec"), "./sluice resume --stack sluice-acme exec");
  assert.equal(withPlace("./sluice resume exec"), "./sluice resume exec --stack sluice-acme");
  assert.equal(withPlace("./sluice cancel task_1"), "./sluice cancel task_1");
  for (const other of ["./sluice cancel task_1", "start the command as ./sluice: x", "npm start"])
    assert.equal(repeatPlace(other), other);

  called({ dataFolder: "/a b/it's" });
  assert.equal(repeatPlace("./sluice status"), "./sluice status --data-folder '/a b/it'\\''s'");
  called({});
  assert.equal(repeatPlace(both), both);
});
