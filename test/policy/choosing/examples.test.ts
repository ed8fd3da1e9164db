import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Choice, choose, type Wanted } from "../../../shared/policy/choosing/choose.ts";
import { meantBy, registryOf } from "../../../shared/policy/choosing/registry.ts";
import type { Standing } from "../../../shared/policy/choosing/standing.ts";

const FINE: Standing = { allowed: true, healthy: true, stale: false, weight: 1 };
const OPEN = { ...FINE, openUntil: 1_900_000_000_000 };

const reasonOf = (choice: Choice) => ("refused" in choice ? choice.refused.reason : undefined);
const namesOf = (choice: Choice) => ("chosen" in choice ? choice.chosen.map(({ agent }) => agent) : []);

describe("who is chosen", () => {
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
