import assert from "node:assert/strict";
import { test } from "node:test";
import {
  MAX_CONCURRENT,
  MAX_DELEGATION_DEPTH,
  MAX_EVENTS_PER_MIN,
  MAX_LIST,
  MAX_MEDIA_BYTES,
  MAX_QUEUED,
  MAX_QUOTA,
  MAX_STATUS_EVERY_SEC,
  MAX_TIMEOUT_SEC,
} from "../../shared/config/policy.ts";
import { complaint, policyOf, read } from "./support/agents-yaml.ts";

const BOUNDS: readonly [field: string, least: number, most: number][] = [
  ["maxDelegationDepth", 0, MAX_DELEGATION_DEPTH],
  ["maxConcurrent", 0, MAX_CONCURRENT],
  ["maxQueued", 1, MAX_QUEUED],
  ["statusEverySec", 0, MAX_STATUS_EVERY_SEC],
  ["eventsPerMin", 0, MAX_EVENTS_PER_MIN],
];
for (const [field, least, most] of BOUNDS)
  test(`bounds of ${field}`, () => {
    const text = (value: number) => `deployment: a\ndefaults: { ${field}: ${value} }`;
    for (const value of [least, most]) assert.doesNotThrow(() => read(text(value)));
    assert.match(
      complaint(text(least - 1)),
      new RegExp(`${field}: expected at least ${least}, got ${least - 1}$`),
    );
    assert.match(
      complaint(text(most + 1)),
      new RegExp(`${field}: expected at most ${most}, got ${most + 1}$`),
    );
  });

test("bounds of timeoutSec and of names", () => {
  const time = (of: string) => `deployment: a\ndefaults: { timeoutSec: { ${of} } }`;
  assert.deepEqual(policyOf(time(`default: 1, max: ${MAX_TIMEOUT_SEC}`)).timeoutSec.max, MAX_TIMEOUT_SEC);
  assert.match(complaint(time("default: 0")), /expected at least 1, got 0$/);
  assert.match(complaint(time(`max: ${MAX_TIMEOUT_SEC + 1}`)), /expected at most 31622400/);
  assert.doesNotThrow(() => read(`deployment: ${"d".repeat(32)}`));
  assert.match(complaint(`deployment: ${"d".repeat(33)}`), /deployment: expected 1 to 32/);
  assert.doesNotThrow(() => read(`deployment: a\nagents: { support: { displayName: ${"x".repeat(128)} } }`));
});

test("bounds of quotas, media and lists", () => {
  const of = (field: string) => `deployment: a\ndefaults: { ${field} }`;
  for (const name of ["open", "openPerPeer"]) {
    assert.doesNotThrow(() => read(of(`quotas: { ${name}: ${MAX_QUOTA} }`)));
    assert.match(complaint(of(`quotas: { ${name}: ${MAX_QUOTA + 1} }`)), /expected at most 1000, got 1001$/);
  }
  assert.doesNotThrow(() => read(of(`delegateMedia: { maxBytes: ${MAX_MEDIA_BYTES} }`)));
  assert.match(complaint(of(`delegateMedia: { maxBytes: ${MAX_MEDIA_BYTES + 1} }`)), /at most 67108864/);
  assert.match(complaint(of("delegateMedia: { allowedMimeTypes: [text] }")), /expected a media type/);
  const peers = (count: number) => Array.from({ length: count }, (_, n) => `peer-${n}`).join(", ");
  assert.doesNotThrow(() => read(of(`acceptFromRuntimes: [${peers(MAX_LIST)}]`)));
  assert.match(complaint(of(`acceptFromRuntimes: [${peers(MAX_LIST + 1)}]`)), /expected at most 200 entries/);
});
