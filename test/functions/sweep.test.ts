import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as z from "zod";
import { defineAgent, skill } from "../../shared/agents/index.ts";
import { Meter, ofPart } from "../support/meter.ts";
import { until } from "../support/until.ts";
import { startWorld, type World } from "../support/world.ts";

const agentsOf = (count: number) =>
  Array.from({ length: count }, (_, n) =>
    defineAgent({
      id: `agent-${n}`,
      description: "",
      skills: { task: skill({ name: "Task", description: "", input: z.string(), run: async () => "" }) },
    }),
  );

for (const agents of [1, 100, 101])
  describe(`a deployment of ${agents} agents with a limit`, () => {
    const meter = new Meter();
    let world: World;
    before(async () => {
      world = await startWorld(agentsOf(agents), { maxConcurrent: 2 }, { route: meter.route });
      await world.run();
      await until("all is answered", () => meter.settled);
      meter.reset();
    });
    after(async () => {
      await world.stop();
      meter.stop();
    });

    test("costs sweep a query for each part of the index, and a read for each hundred agents", async () => {
      await world.sweep();
      await until("all is answered", () => meter.settled);
      const kinds = ofPart(meter.passed, "dynamodb").map(({ kind }) => kind);
      assert.deepEqual(kinds.sort(), [
        ...Array.from({ length: Math.ceil(agents / 100) }, () => "dynamodb BatchGetItem"),
        ...Array.from({ length: 8 }, () => "dynamodb Query"),
      ]);
      assert.equal(meter.passed.length, kinds.length);
    });
  });
