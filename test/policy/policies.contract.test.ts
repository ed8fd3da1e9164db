import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { agentPolicy } from "../../shared/config/policy.ts";
import { dynamoPolicies, HISTORY_KEPT_DAYS } from "../../shared/policy/dynamodb-policies.ts";
import { dynamoStandings, POLICY_KEY, policyPartition } from "../../shared/policy/dynamodb-standing.ts";
import { policiesOf } from "../../shared/policy/runtime-policy.ts";
import { dynamoPauses } from "../../shared/tasks/dynamodb-pauses.ts";
import { simulatedAccess } from "../support/simulated-store.ts";
import { startTable } from "../support/table.ts";

const table = await startTable();
after(() => table.stop());
const NOW = 1_900_000_000_000;
const noted = (of: object = {}) => ({ at: NOW, by: "eve", command: "policy apply", changes: [], ...of });

for (const [name, open] of [
  ["a simulated table", simulatedAccess],
  ["DynamoDB", () => table.access],
] as const)
  describe(`policies over ${name}`, () => {
    const access = open();
    const policies = dynamoPolicies(access);

    test("a change is made to the version that is known, and to no other", async () => {
      const runtime = "acme-support";
      assert.equal(await policies.policyOf(runtime), undefined);
      const first = { enabled: false, acceptFromRuntimes: [] };
      assert.equal(await policies.change(runtime, { base: 0, fields: first }, noted()), "changed");
      assert.equal(await policies.change(runtime, { base: 0, fields: {} }, noted()), "conflict");
      assert.deepEqual(await policies.policyOf(runtime), { version: 1, fields: first });
      const changes = [{ field: "enabled", before: false, after: true }];
      assert.equal(
        await policies.change(runtime, { base: 1, fields: {} }, noted({ changes, command: "allow x" })),
        "changed",
      );
      assert.equal(await policies.change(runtime, { base: 1, fields: {} }, noted()), "conflict");
      assert.deepEqual(await policies.history(runtime, 10), [
        { version: 2, ...noted({ changes, command: "allow x" }), fields: [] },
        { version: 1, ...noted(), fields: ["enabled", "acceptFromRuntimes"] },
      ]);
      assert.equal((await policies.history(runtime, 1)).length, 1);
      assert.deepEqual(await policies.history("acme-support-2", 10), []);
    });

    test("those of many are read together, each as it is by itself", async (t) => {
      const runtimes = Array.from({ length: 101 }, (_, at) => `acme-many-${at}`);
      const changed = [0, 50, 100].map((at) => `acme-many-${at}`);
      for (const runtime of changed)
        await policies.change(runtime, { base: 0, fields: { enabled: false } }, noted());
      const { mock } = t.mock.method(access.client, "send");
      const found = await policies.policiesOf(runtimes);
      assert.ok(mock.callCount() < 10, "a request for each hundred, and for what was left out of one");
      assert.deepEqual([...found.keys()], changed);
      assert.deepEqual(found.get("acme-many-50"), await policies.policyOf("acme-many-50"));
      assert.equal((await policies.policiesOf([])).size, 0);
    });

    test("a plan is carried out once", async () => {
      const runtime = "acme-planned";
      const plan = { id: "chg_1", at: NOW, by: "eve", base: 0, fields: { enabled: false } };
      assert.equal(await policies.planOf(runtime, plan.id), undefined);
      await policies.plan(runtime, plan);
      assert.deepEqual(await policies.planOf(runtime, plan.id), plan);
      const carryOut = (base: number, id = plan.id) =>
        policies.change(runtime, { base, fields: { enabled: false } }, noted({ plan: id }));
      assert.equal(await carryOut(1), "conflict");
      assert.deepEqual(await Promise.all([carryOut(0), carryOut(0)]).then((all) => all.sort()), [
        "changed",
        "used",
      ]);
      assert.equal(await carryOut(1), "used");
      assert.equal(await carryOut(1, "chg_2"), "used", "a plan that is not there cannot be carried out");
      assert.deepEqual(await policies.planOf(runtime, plan.id), { ...plan, usedAt: NOW });
      assert.equal((await policies.history(runtime, 10))[0]?.plan, plan.id);
    });

    test("functions see the file's policy with what was changed, and a pause, in one look", async () => {
      const runtime = "acme-seen";
      const standings = dynamoStandings(access);
      assert.deepEqual(await standings.standingOf(runtime), {});
      await policies.change(runtime, { base: 0, fields: { maxConcurrent: 3 } }, noted());
      await dynamoPauses(access).pause(runtime, { at: NOW, by: "eve", refuse: true });
      assert.deepEqual(await standings.standingOf(runtime), {
        pause: { at: NOW, by: "eve", refuse: true },
        policy: { version: 1, fields: { maxConcurrent: 3 } },
      });
      const file = agentPolicy.parse({ acceptFromRuntimes: ["a"] });
      const agent = {
        id: "seen",
        runtime,
        channelRef: "seen",
        displayName: "",
        description: "",
        version: "",
      };
      const agents = [{ ...agent, skills: [], policy: file, settings: {} }];
      const inForce = policiesOf({ agents }, { of: (of) => standings.standingOf(of) });
      assert.deepEqual(await inForce.of(runtime), { ...file, maxConcurrent: 3 });
      assert.equal(await inForce.of("acme-unknown"), undefined);
    });

    test("a field that is not known is not passed over", async () => {
      const runtime = "acme-newer";
      const Item = { pk: policyPartition(runtime), sk: POLICY_KEY, version: 1, fields: { forbidAll: true } };
      await access.client.send(new PutCommand({ TableName: access.table, Item }));
      await assert.rejects(dynamoStandings(access).standingOf(runtime), /forbidAll/);
    });
  });

test("who has changed what is kept for 400 days", () => assert.equal(HISTORY_KEPT_DAYS, 400));
