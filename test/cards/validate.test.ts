import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { encodeRecord } from "../../shared/cards/fit.ts";
import { instanceId, instanceOf } from "../../shared/cards/instance.ts";
import { cardRecord } from "../../shared/cards/record.ts";
import { isClean } from "../../shared/cards/sanitize.ts";
import { recordFaults } from "../../shared/cards/validate.ts";
import { hosted } from "./support.ts";

const KEY = "acme-support";
const servers = ["tls://nats.example:4222"];
const good = cardRecord(hosted(), { deployment: "acme", servers, instance: "sluice-acme", now: 0 });

function faultsOf(value: unknown, key = KEY): string[] {
  return recordFaults(key, new TextEncoder().encode(JSON.stringify(value)));
}

/** The good record with one thing changed, by its path. */
function changed(path: string, value: unknown): unknown {
  const copy: unknown = JSON.parse(JSON.stringify(good));
  const keys = path.split(".");
  const last = keys.pop() ?? "";
  const holder = keys.reduce<unknown>((of, key) => Reflect.get(Object(of), key), copy);
  if (value === undefined) Reflect.deleteProperty(Object(holder), last);
  else Reflect.set(Object(holder), last, value);
  return copy;
}

test("each rule that readers have is one of ours", () => {
  assert.deepEqual(faultsOf(good), []);
  const [interfaces, skill] = ["card.supportedInterfaces", "card.skills.0"];
  for (const [path, value] of [
    ...["", "12345", "a b", "bot-pid-7", undefined, 7].map((of) => ["agentId", of] as const),
    ...["acme-other", "", undefined].map((of) => ["card.name", of] as const),
    ...["", " ", undefined, 1].map((of) => ["card.version", of] as const),
    ...[[], {}, undefined].map((of) => [interfaces, of] as const),
    ...["", " ", undefined].map((of) => [`${interfaces}.0.protocolBinding`, of] as const),
    ...["", "secret", undefined].map((of) => [`${interfaces}.0.protocolVersion`, of] as const),
    ...["http://10.0.0.1", "nats://token.example", 7].map((of) => [`${interfaces}.0.url`, of] as const),
    ...[[], { extensions: [] }, { streaming: "yes" }, "x"].map((of) => ["card.capabilities", of] as const),
    ...[[""], ["text"], ["text/"], "text/plain"].map((of) => ["card.defaultInputModes", of] as const),
    ["card.defaultOutputModes", [""]],
    [`${skill}.inputModes`, ["a b/c"]],
    [`${skill}.outputModes`, [""]],
    ...["task", "a/b/c", "support/", "/task", "support/task*", "-a/b", `${"a".repeat(65)}/b`].map(
      (of) => [`${skill}.id`, of] as const,
    ),
    [`${skill}.tags`, [1]],
    ["card.skills", {}],
    ...["a b", "-x", "a/b"].map((of) => ["extendedCard.channel_ref", of] as const),
    ["extendedCard.display_name", 7],
    ["extendedCard.result_visibility_support", "proxy"],
    ...["yesterday", "", 0].map((of) => ["expiresAt", of] as const),
    ["publishedAt", "2026-02-30T00:00:00Z"],
  ] as const)
    assert.notDeepEqual(faultsOf(changed(path, value)), [], `${path}: ${JSON.stringify(value)}`);
});

test("what readers do without, or fill in, is no fault", () => {
  for (const [path, value] of [
    ["card.capabilities", null],
    ["card.capabilities", undefined],
    ["card.skills", []],
    ["card.supportedInterfaces.0.url", ""],
    ["card.defaultInputModes", ['text/plain; charset="utf-8"', "application/vnd.x+json"]],
    ["card.description", undefined],
    ["extendedCard", undefined],
    ["extendedCard.channel_ref", ""],
    ["expiresAt", undefined],
    ["publishedAt", "2026-08-01T14:00:00.123456789+02:00"],
    ["somethingElse", { of: "others" }],
  ] as const)
    assert.deepEqual(faultsOf(changed(path, value)), [], path);
});

test("a record under another key, or under a name that peers blank, is none", () => {
  assert.deepEqual(faultsOf(good, "acme-other"), ["agentId: expected acme-other, the record's key"]);
  const blanked = { ...good, agentId: "my-token", card: { ...good.card, name: "my-token" } };
  assert.deepEqual(faultsOf(blanked, "my-token"), [
    "card.name: expected the agentId, of which peers blank nothing",
  ]);
});

test("whatever lies in the bucket is judged, and nothing is thrown", () => {
  assert.deepEqual(recordFaults(KEY, Buffer.from([0xff, 0xfe])), ["record: expected JSON in UTF-8"]);
  fc.assert(
    fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
      assert.notDeepEqual(recordFaults(KEY, new TextEncoder().encode(text)), []);
    }),
  );
});

test("a stack signs by its name, or by a digest where peers would blank a part of that", () => {
  assert.equal(instanceId("sluice-acme--dev"), "sluice-acme--dev");
  for (const name of ["sluice-acme--token", "sluice-12345678901234567--dev"]) {
    assert.match(instanceId(name), /^sluice-[0-9a-f]{16}$/);
    assert.equal(instanceId(name), instanceId(name));
    assert.ok(isClean(instanceId(name)));
  }
  assert.equal(instanceOf(encodeRecord(good)), "sluice-acme");
  for (const text of ["", "null", "[]", '{"instanceId":1}'])
    assert.equal(instanceOf(Buffer.from(text)), undefined);
});
