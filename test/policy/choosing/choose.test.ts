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
const OPEN = { ...FINE, openUntil: 1_900_000_000_000 };

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
          const { allowed, openUntil, healthy, stale } = stand(agent);
          assert.ok(allowed && openUntil === undefined);
          if (why === "target") assert.equal(despite.length, Number(!healthy) + Number(stale));
          else assert.ok(healthy && !stale);
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
          const { allowed, openUntil, healthy, stale } = stand(agent);
          return has(agents, agent, of) && allowed && openUntil === undefined && healthy && !stale;
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

describe("examples", () => {
  const agents = registryOf({
    file: [{ name: "auditor", aliases: ["audit"], skills: ["scan"] }, { name: "relay" }],
    cards: [
      { name: "acme-scout", aliases: ["scout"], skills: ["scan", "general_task"] },
      { name: "acme-spare", aliases: ["scout"], skills: ["sbom", "task"] },
      { name: "auditor", skills: ["sbom", "scan"] },
    ],
    fallback: "relay",
  });
  const all =
    (of: Partial<Record<string, Standing>> = {}) =>
    (agent: string) =>
      of[agent] ?? FINE;
  const one = (of: Wanted, stand = all(), chance = 0) => choose(of, agents, stand, () => chance);

  test("a target by its name, by its alias, without a skill, and one of whose skills nothing is known", () => {
    const chosen = (agent: string) => ({ chosen: [{ agent, why: "target", despite: [] }], passedOver: [] });
    assert.deepEqual(one({ targets: ["auditor"], skill: "sbom" }), chosen("auditor"));
    assert.deepEqual(one({ targets: ["audit"] }), chosen("auditor"));
    assert.deepEqual(one({ targets: ["audit", "auditor"] }), chosen("auditor"));
    assert.deepEqual(one({ targets: ["relay"], skill: "whatever" }), chosen("relay"));
  });

  test("no card takes a name that the file gives, and what cards alone say may be ambiguous", () => {
    const trusted = { name: "remote-1", aliases: ["audit"] };
    const cards = [
      { name: "audit" },
      { name: "eve", aliases: ["audit", "remote-1", "odd"] },
      { name: "odd" },
    ];
    const known = registryOf({ file: [trusted], cards });
    const meant = (of: string, among = known) => meantBy(among, of);
    assert.deepEqual(
      [meant("audit"), meant("remote-1"), meant("odd")],
      [["remote-1"], ["remote-1"], ["odd"]],
    );
    const others = registryOf({
      file: [],
      cards: [...cards, { name: "bob", aliases: ["audit", "b"] }, { name: "eve", aliases: ["b"] }],
    });
    assert.deepEqual([meant("audit", others), meant("b", others)], [["audit"], ["bob", "eve"]]);
  });

  test("each refusal of a target says why, and what else there is", () => {
    const stand = all({ auditor: { ...FINE, allowed: false }, "acme-spare": { ...OPEN, stale: true } });
    for (const [of, message, more] of [
      [
        { targets: ["auditer"] },
        'target_unresolved: no agent is called "auditer"; nearest are "auditor"',
        { instead: ["auditor"] },
      ],
      [
        { targets: ["zzzzzz", "auditor"], skill: "scan" },
        'target_unresolved: no agent is called "zzzzzz"; known are "auditor", "relay", "acme-scout", "acme-spare"',
        {},
      ],
      [
        { targets: ["scout"] },
        'target_ambiguous: "scout" may be "acme-scout", "acme-spare"',
        { instead: ["acme-scout", "acme-spare"] },
      ],
      [
        { targets: ["acme-scout"], skill: "sbom" },
        'unknown_skill: "acme-scout" has no skill "sbom"; it has "scan", "task"',
        {},
      ],
      [
        { targets: ["auditor"], skill: "scan" },
        'not_allowed: "auditor": the policy of the agent that asks does not name it for this skill',
        { passedOver: [{ agent: "auditor", reasons: ["not_allowed"] }] },
      ],
      [
        { targets: ["acme-scout", "acme-spare"] },
        'circuit_open: "acme-spare": it has failed five times in a row, and is left alone for a minute, then tried by one request',
        {
          passedOver: [{ agent: "acme-spare", reasons: ["circuit_open", "stale"] }],
          retryAt: OPEN.openUntil,
        },
      ],
      [{ targets: [] }, "no_skill: neither a target nor a skill is named", {}],
      [{ targets: ["all"] }, "no_skill: all stands for all that have a skill, and none is named", {}],
    ] as const) {
      const choice = one(of, stand);
      assert.ok("refused" in choice);
      const { reason, ...rest } = choice.refused;
      assert.ok(message.startsWith(`${reason}: `));
      assert.deepEqual(
        { retryAt: undefined, ...rest },
        { retryAt: undefined, instead: [], passedOver: [], message, ...more },
      );
    }
  });

  test("what a requester names is quoted and cut", () => {
    const choice = one({ targets: [`a\n${"x".repeat(500)}`] });
    assert.ok("refused" in choice);
    assert.match(choice.refused.message, /^target_unresolved: no agent is called "a\\nx{78}…"; known are/);
  });

  test("one that is stale or ill is asked by who names it, and by nobody else", () => {
    const stand = all({ "acme-scout": { ...FINE, stale: true, healthy: false } });
    assert.deepEqual(one({ targets: ["acme-scout"], skill: "scan" }, stand), {
      chosen: [{ agent: "acme-scout", why: "target", despite: ["unhealthy", "stale"] }],
      passedOver: [],
    });
    assert.deepEqual(one({ skill: "task" }, stand), {
      chosen: [{ agent: "acme-spare", why: "skill", despite: [] }],
      passedOver: [{ agent: "acme-scout", reasons: ["unhealthy", "stale"] }],
    });
  });

  test("by skill: what the file declares, else who has a card, else the default, else nobody", () => {
    assert.deepEqual(one({ skill: "scan" }), {
      chosen: [{ agent: "auditor", why: "skill", despite: [] }],
      passedOver: [{ agent: "acme-scout", reasons: ["outranked"] }],
    });
    const refusesAuditor = { auditor: { ...FINE, allowed: false } };
    assert.deepEqual(one({ skill: "scan" }, all(refusesAuditor)), {
      chosen: [{ agent: "acme-scout", why: "skill", despite: [] }],
      passedOver: [{ agent: "auditor", reasons: ["not_allowed"] }],
    });
    assert.deepEqual(one({ skill: "paint" }), {
      chosen: [{ agent: "relay", why: "default", despite: [] }],
      passedOver: [],
    });
    const ill = { ...refusesAuditor, "acme-scout": OPEN, relay: { ...FINE, healthy: false } };
    const choice = one({ skill: "scan" }, all(ill));
    assert.equal(
      "refused" in choice && choice.refused.message,
      'no_candidate: nobody can be asked for "scan": "acme-scout" is circuit_open, "auditor" is not_allowed, "relay" is unhealthy',
    );
  });

  test("of two alike the draw decides, by weight", () => {
    const stand = all({ "acme-scout": { ...FINE, weight: 0.25 }, "acme-spare": { ...FINE, weight: 0.75 } });
    assert.deepEqual(
      [0, 0.249, 0.25, 0.999].map((chance) => namesOf(one({ skill: "task" }, stand, chance))),
      [["acme-scout"], ["acme-scout"], ["acme-spare"], ["acme-spare"]],
    );
  });

  test("all are all that have the skill and can be asked, whatever their priority; never the default", () => {
    const stand = all({ "acme-spare": { ...FINE, stale: true } });
    assert.deepEqual(one({ targets: ["all"], skill: "sbom" }, stand), {
      chosen: [{ agent: "auditor", why: "all", despite: [] }],
      passedOver: [{ agent: "acme-spare", reasons: ["stale"] }],
    });
    assert.deepEqual(namesOf(one({ targets: ["acme-scout", "all"], skill: "scan" })), [
      "acme-scout",
      "auditor",
    ]);
    assert.equal(reasonOf(one({ targets: ["all"], skill: "paint" })), "no_candidate");
    assert.equal(reasonOf(one({ targets: ["all", "nobody"], skill: "scan" })), "target_unresolved");
  });
});
