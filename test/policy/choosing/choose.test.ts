import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import {
  type Choice,
  type Chosen,
  choose,
  concerned,
  type Wanted,
} from "../../../shared/policy/choosing/choose.ts";
import {
  type Declared,
  meantBy,
  type Registry,
  registryOf,
} from "../../../shared/policy/choosing/registry.ts";
import type { Standing } from "../../../shared/policy/choosing/standing.ts";

const FINE: Standing = { allowed: true, healthy: true, stale: false, weight: 1 };

/** Names, aliases and skills of few letters, so that they meet. */
const name = fc.constantFrom("ann", "bob", "cat", "dan", "eve", "all");
const skill = fc.constantFrom("task", "general_task", "scan", "sbom");
const declared: fc.Arbitrary<Declared> = fc.record(
  { name, aliases: fc.array(name, { maxLength: 2 }), skills: fc.array(skill, { maxLength: 3 }) },
  { requiredKeys: ["name"] },
);
const registry = fc
  .record({
    file: fc.array(declared, { maxLength: 4 }),
    cards: fc.array(declared, { maxLength: 6 }),
    fallback: fc.option(name, { nil: undefined }),
  })
  .map(registryOf);
const standing: fc.Arbitrary<Standing> = fc.record(
  {
    allowed: fc.boolean(),
    refuses: fc.boolean(),
    healthy: fc.boolean(),
    stale: fc.boolean(),
    weight: fc.constantFrom(0, 0.25, 1),
    openUntil: fc.option(fc.constant(1_900_000_000_000), { nil: undefined }),
  },
  { requiredKeys: ["allowed", "healthy", "stale", "weight"] },
);
const standings = fc.dictionary(name, standing).map((of) => {
  const known = new Map(Object.entries(of));
  return (agent: string) => known.get(agent) ?? FINE;
});
const target = fc.oneof(name, fc.constantFrom("nobody", "bobby", ""));
const wanted: fc.Arbitrary<Wanted> = fc.record({
  targets: fc.option(fc.array(target, { maxLength: 3 }), { nil: undefined }),
  skill: fc.option(skill, { nil: undefined }),
});
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }).map((of) => () => of);
const everything = [wanted, registry, standings, random] as const;

const chosenOf = (choice: Choice): readonly Chosen[] => ("chosen" in choice ? choice.chosen : []);
const reasonOf = (choice: Choice) => ("refused" in choice ? choice.refused.reason : undefined);
const namesOf = (choice: Choice) => chosenOf(choice).map(({ agent }) => agent);
const key = (of: string) => (of === "general_task" ? "task" : of);
const has = ({ agents }: Registry, agent: string, of: string) =>
  agents.get(agent)?.skills?.has(key(of)) === true;

describe("whatever is asked of whomever", () => {
  test("a target gets it or the request is refused: nobody is put in its place", () => {
    fc.assert(
      fc.property(...everything, (of, agents, stand, chance) => {
        const { targets = [] } = of;
        const named = targets.filter((each) => each !== "all");
        const choice = choose(of, agents, stand, chance);
        const meant = named.map((each) => meantBy(agents, each));
        if (named.length === 0 || "refused" in choice) return;
        for (const each of meant) assert.equal(each.length, 1);
        const names = new Set(meant.flat());
        for (const each of names) assert.ok(namesOf(choice).includes(each));
        if (!targets.includes("all")) assert.deepEqual(new Set(namesOf(choice)), names);
      }),
    );
  });

  test("a target that nobody is refuses the request before anything else, and says the nearest", () => {
    fc.assert(
      fc.property(...everything, (of, agents, stand, chance) => {
        const named = (of.targets ?? []).filter((each) => each !== "all");
        const nobody = named.some((each) => meantBy(agents, each).length === 0);
        const incomplete = of.skill === undefined && named.length < (of.targets ?? []).length;
        const choice = choose(of, agents, stand, chance);
        if (incomplete) assert.equal(reasonOf(choice), "no_skill");
        else assert.equal(reasonOf(choice) === "target_unresolved", nobody);
      }),
    );
  });

  test("whoever is asked is there, may be called, once, and has the skill unless that is unknown or it is the default", () => {
    fc.assert(
      fc.property(...everything, (of, agents, stand, chance) => {
        const choice = choose(of, agents, stand, chance);
        assert.equal(new Set(namesOf(choice)).size, namesOf(choice).length);
        for (const { agent, why, despite } of chosenOf(choice)) {
          assert.ok(agents.agents.has(agent));
          const { allowed, openUntil, healthy, stale, refuses } = stand(agent);
          assert.ok(allowed && openUntil === undefined);
          if (why === "target") assert.equal(despite.length, Number(!healthy) + Number(stale));
          else assert.ok(healthy && !stale && refuses !== true);
          if (why === "default") assert.equal(agent, agents.fallback);
          else if (of.skill !== undefined)
            assert.ok(
              has(agents, agent, of.skill) || (why === "target" && !agents.agents.get(agent)?.skills),
            );
        }
      }),
    );
  });

  test("who has the skill is chosen, or it is told why not", () => {
    fc.assert(
      fc.property(skill, registry, standings, random, (of, agents, stand, chance) => {
        for (const targets of [undefined, ["all"]]) {
          const choice = choose({ skill: of, targets }, agents, stand, chance);
          const { passedOver } = "refused" in choice ? choice.refused : choice;
          const told = [...namesOf(choice), ...passedOver.map(({ agent }) => agent)];
          for (const agent of agents.agents.keys())
            if (has(agents, agent, of)) assert.equal(told.filter((each) => each === agent).length, 1);
          for (const { reasons } of passedOver) assert.ok(reasons.length > 0);
        }
      }),
    );
  });

  test("of a higher priority comes first, the default last, and a draw never falls on no weight where there is some", () => {
    fc.assert(
      fc.property(skill, registry, standings, random, (of, agents, stand, chance) => {
        const choice = choose({ skill: of }, agents, stand, chance);
        const priority = (agent: string) => agents.agents.get(agent)?.skills?.get(key(of)) ?? 0;
        const fit = [...agents.agents.keys()].filter((agent) => {
          const { allowed, openUntil, healthy, stale, refuses } = stand(agent);
          const isFit = allowed && openUntil === undefined && healthy && !stale && refuses !== true;
          return has(agents, agent, of) && isFit;
        });
        const [one] = chosenOf(choice);
        if (fit.length === 0) return assert.ok(one === undefined || one.why === "default");
        const highest = Math.max(...fit.map(priority));
        const best = fit.filter((agent) => priority(agent) === highest);
        assert.ok(one?.why === "skill" && best.includes(one.agent));
        if (best.some((agent) => stand(agent).weight > 0)) assert.ok(stand(one.agent).weight > 0);
        else assert.equal(one.agent, best.toSorted()[0]);
      }),
    );
  });

  test("the order in which agents are known changes nothing, and only those count that are said to", () => {
    const sources = fc.tuple(fc.array(declared, { maxLength: 4 }), fc.array(declared, { maxLength: 6 }));
    fc.assert(
      fc.property(wanted, sources, standings, random, (of, [file, cards], stand, chance) => {
        const agents = registryOf({ file, cards, fallback: "eve" });
        const turned = registryOf({ file: file.toReversed(), cards: cards.toReversed(), fallback: "eve" });
        const counting = concerned(of, agents);
        const only = (agent: string) => {
          assert.ok(counting.has(agent), agent);
          return stand(agent);
        };
        const choice = choose(of, agents, only, chance);
        const again = choose(of, turned, stand, chance);
        assert.deepEqual(chosenOf(again), chosenOf(choice));
        assert.equal(reasonOf(again), reasonOf(choice));
      }),
    );
  });
});
