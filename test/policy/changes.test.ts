import assert from "node:assert/strict";
import { test } from "node:test";
import { agentPolicy, MAX_MEDIA_BYTES, policyFields } from "../../shared/config/policy.ts";
import { changesOf, isSensitive, type Risk, risksOf } from "../../shared/policy/changes.ts";

const policy = (of: object) => agentPolicy.parse(of);
const media = (of: object) => ({ delegateMedia: of });

/** From one policy to the other and back: what either risks. */
const CASES: readonly [field: string, narrow: object, wide: object, risks: readonly Risk[]][] = [
  ["enabled", { enabled: false }, {}, ["enables"]],
  ["acceptFromRuntimes: a peer", {}, { acceptFromRuntimes: ["a"] }, ["accepts_peer"]],
  [
    "acceptFromRuntimes: everybody",
    { acceptFromRuntimes: ["a"] },
    { acceptFromRuntimes: ["a", "*"] },
    ["opens_to_everyone"],
  ],
  [
    "acceptFromRuntimes: everybody instead of some",
    { acceptFromRuntimes: ["a", "b"] },
    { acceptFromRuntimes: ["*"] },
    ["opens_to_everyone"],
  ],
  ["acceptSkills: one more", { acceptSkills: ["a"] }, { acceptSkills: ["a", "b"] }, ["more_skills"]],
  ["acceptSkills: all", { acceptSkills: ["a"] }, {}, ["more_skills"]],
  ["timeoutSec.max", { timeoutSec: { max: 400 } }, { timeoutSec: { max: 401 } }, ["raises_limit"]],
  ["timeoutSec.default", { timeoutSec: { default: 4 } }, { timeoutSec: { default: 5 } }, ["raises_limit"]],
  ["maxDelegationDepth", { maxDelegationDepth: 0 }, {}, ["raises_limit"]],
  ["maxConcurrent", { maxConcurrent: 63 }, { maxConcurrent: 64 }, ["raises_limit"]],
  ["maxConcurrent: none", { maxConcurrent: 64 }, { maxConcurrent: 0 }, ["raises_limit"]],
  ["maxQueued", { maxQueued: 1 }, { maxQueued: 2 }, ["raises_limit"]],
  ["quotas.open", { quotas: { open: 5 } }, {}, ["raises_limit"]],
  ["quotas.openPerPeer", { quotas: { openPerPeer: 5 } }, { quotas: { openPerPeer: 6 } }, ["raises_limit"]],
  ["eventsPerMin", { eventsPerMin: 60 }, {}, ["raises_limit"]],
  ["statusEverySec", {}, { statusEverySec: 4 }, ["raises_limit"]],
  ["delegateTargets", {}, { delegateTargets: [{ runtimeAgentId: "a" }] }, ["delegates_to_more"]],
  ["delegateMedia.maxBytes", media({ maxBytes: MAX_MEDIA_BYTES - 1 }), {}, ["fetches_more"]],
  ["delegateMedia.allowedMimeTypes", media({ allowedMimeTypes: ["text/plain"] }), {}, ["fetches_more"]],
  ["delegateMedia.allowObjectRefs", media({ allowObjectRefs: false }), {}, ["fetches_more"]],
  ["allowMemoryWrite", {}, { allowMemoryWrite: true }, ["memory_write"]],
  ["discoverable", { discoverable: false }, {}, ["shows_more"]],
  ["exposeSkills", { exposeSkills: [{ id: "a" }] }, {}, ["shows_more"]],
  ["resultVisibility", {}, { resultVisibility: "proxy" }, []],
];

for (const [field, narrow, wide, risks] of CASES)
  test(`${field}: who gives more is told so, who gives less is not`, () => {
    assert.deepEqual(risksOf(policy(narrow), policy(wide)), risks);
    assert.deepEqual(risksOf(policy(wide), policy(narrow)), []);
    const [name] = field.split(/[.:]/);
    assert.deepEqual(
      changesOf(policy(narrow), policy(wide)).map((of) => of.field),
      [name],
    );
  });

test("each field has been looked at", () => {
  const named = new Set(CASES.map(([field]) => field.split(/[.:]/)[0]));
  assert.deepEqual(
    Object.keys(policyFields).filter((field) => !named.has(field)),
    [],
  );
});

test("an exact peer and what a card shows need no confirmation, all else does", () => {
  const harmless = new Set<Risk>(["accepts_peer", "shows_more"]);
  for (const [, , , risks] of CASES)
    assert.equal(
      isSensitive(risks),
      risks.some((risk) => !harmless.has(risk)),
    );
});
