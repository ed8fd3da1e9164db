import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readMessage } from "../../shared/wire/index.ts";

const parts = (a2a: unknown) => readMessage(a2a).parts;

test("bare text", () => {
  assert.deepEqual(readMessage("Hello"), { parts: [{ text: "Hello" }] });
  assert.deepEqual(readMessage(""), { parts: [{ text: "" }] });
  assert.deepEqual(readMessage({ kind: "text", text: "Hello" }), { parts: [{ text: "Hello" }] });
});

test("parts, alone and in a message, of either version", () => {
  const old = [
    { kind: "text", text: "Hello" },
    { kind: "data", data: { n: 3 } },
  ];
  const now = [{ text: "Hello" }, { data: { n: 3 } }];
  for (const form of [old, now]) {
    assert.deepEqual(readMessage({ parts: form }), { parts: now });
    assert.deepEqual(readMessage({ message: { parts: form } }), { parts: now });
  }
});

test("what a message says of itself is kept", () => {
  const message = { messageId: "m-1", role: "ROLE_USER", metadata: { k: 1 }, parts: [{ text: "Hello" }] };
  assert.deepEqual(readMessage({ message: { ...message, contextId: "ignored" } }), message);
  assert.deepEqual(readMessage({ kind: "message", ...message, role: 7, metadata: null }), {
    messageId: "m-1",
    parts: [{ text: "Hello" }],
  });
});

test("files, by content and by place", () => {
  assert.deepEqual(
    parts({
      parts: [
        { kind: "file", file: { name: "a.bin", mimeType: "application/x", bytes: "AAE=" } },
        { kind: "file", file: { uri: "https://example.org/a" }, metadata: { k: 1 } },
        { raw: "AAE=", filename: "a.bin", mediaType: "application/x" },
        { url: "https://example.org/a", metadata: { k: 1 } },
      ],
    }),
    [
      { raw: "AAE=", filename: "a.bin", mediaType: "application/x" },
      { url: "https://example.org/a", metadata: { k: 1 } },
      { raw: "AAE=", filename: "a.bin", mediaType: "application/x" },
      { url: "https://example.org/a", metadata: { k: 1 } },
    ],
  );
});

test("data of any kind is data, null included", () => {
  for (const data of [null, 0, "", [], { data: null }]) {
    assert.deepEqual(parts({ parts: [{ data }, { kind: "data", data }] }), [{ data }, { data }]);
  }
});

test("anything else is one data part", () => {
  for (const a2a of [
    7,
    true,
    [],
    [{ text: "Hello" }],
    {},
    { text: "Hello" },
    { message: "Hello" },
    { parts: "none" },
    { kind: "image" },
  ])
    assert.deepEqual(readMessage(a2a), { parts: [{ data: a2a }] });
});

test("a part that is none is data, a bare text in its place a text", () => {
  assert.deepEqual(parts({ parts: [{ colour: "blue" }, "Hello", { kind: "text" }, 7] }), [
    { data: { colour: "blue" } },
    { text: "Hello" },
    { data: { kind: "text" } },
    { data: 7 },
  ]);
});

test("any JSON is a message, and one in this shape stays as it is", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (a2a) => {
      const message = readMessage(a2a);
      assert.deepEqual(readMessage(message), message);
    }),
  );
});
