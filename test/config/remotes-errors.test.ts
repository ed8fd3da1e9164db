import assert from "node:assert/strict";
import { test } from "node:test";
import { complaint, read } from "./support/agents-yaml.ts";

const URL_OF = "https://auditor.example.com/a2a";
/** What is said of a single remote, from its second line on. */
const remote = (lines: string) => `deployment: acme\nremotes:\n  - name: auditor\n    ${lines}`;
const withUrl = (lines: string) => remote(`url: ${URL_OF}\n    ${lines}`);

const SECOND = `\n  - { name: NAME, url: "${URL_OF}" }`;
const allowing = (of: string) => `deployment: a\noutbound:\n  allow:\n    - ${of}`;
const NOT_ALLOWABLE =
  /^agents\.yaml:4: outbound\.allow\[0\]: expected an origin .* or a range of addresses .*, got a text/;

const WRONG: readonly [name: string, text: string, complaint: RegExp][] = [
  [
    "an unknown field",
    withUrl("url2: x"),
    /^agents\.yaml:5: remotes\[0\]\.url2: unknown field; expected one of name, url, auth, [^\n]*, subscribesTo$/,
  ],
  [
    "an unknown field of auth",
    withUrl("auth: { credentials: env:A, user: x }"),
    /:5: remotes\[0\]\.auth\.user: unknown field; expected one of scheme, credentials$/,
  ],
  [
    "an unknown field of outbound",
    "deployment: a\noutbound: { deny: [] }",
    /:2: outbound\.deny: unknown field; expected one of allow$/,
  ],
  [
    "an unknown mode",
    withUrl("hitl: { mode: never }"),
    /:5: remotes\[0\]\.hitl\.mode: expected "autonomous" or .*, got a text/,
  ],
  [
    "an unknown radius of a skill",
    withUrl("skills: [{ name: a, hitl: { radius: far } }]"),
    /:5: remotes\[0\]\.skills\[0\]/,
  ],
  ["an approval that is not waited for", withUrl("hitl: { approvalSec: 0 }"), /hitl\.approvalSec: expected/],
  [
    "one that is waited for too long",
    withUrl("hitl: { approvalSec: 2592001 }"),
    /hitl\.approvalSec: expected .*2592000/,
  ],
  [
    "an unknown scheme",
    withUrl("auth: { scheme: basic, credentials: env:A }"),
    /auth\.scheme: expected "apiKey" or "bearer" or "hmac", got a text/,
  ],
  [
    "auth without credentials",
    withUrl("auth: { scheme: hmac }"),
    /auth\.credentials: expected secret:NAME, file:PATH or env:NAME, got nothing$/,
  ],
  [
    "credentials none",
    withUrl("auth: { credentials: none }"),
    /:5: remotes\[0\]\.auth\.credentials: expected secret:NAME, file:PATH or env:NAME, got a text of 4 characters$/,
  ],
  [
    "a secret in place of its name",
    withUrl("auth: { credentials: hunter2 }"),
    /expected secret:NAME, file:PATH or env:NAME, got a text of 7 characters$/,
  ],
  [
    "a variable that is none",
    withUrl("auth: { credentials: env:1A }"),
    /expected secret:NAME, file:PATH or env:NAME/,
  ],
  [
    "both ways of auth",
    withUrl("apiKeyEnv: A\n    auth: { credentials: env:A }"),
    /:5: remotes\[0\]\.apiKeyEnv: expected either auth or apiKeyEnv/,
  ],
  [
    "a legacy variable that is none",
    withUrl("apiKeyEnv: a b"),
    /:5: remotes\[0\]\.apiKeyEnv: expected the name of an environment variable/,
  ],
  [
    "no URL",
    remote("streaming: true"),
    /:3: remotes\[0\]\.url: expected a URL https:.* characters, got nothing$/,
  ],
  [
    "a URL of another kind",
    remote("url: ftp://a.example"),
    /:4: remotes\[0\]\.url: expected a URL https:\/\/HOST\/PATH or/,
  ],
  [
    "a URL with a query",
    remote("url: https://a.example/a2a?key=1"),
    /:4: remotes\[0\]\.url: expected a URL without query/,
  ],
  [
    "a URL with a fragment",
    remote("url: 'https://a.example/a2a#x'"),
    /:4: remotes\[0\]\.url: expected a URL without query/,
  ],
  [
    "a URL with an address in disguise",
    remote("url: https://0x7f.1/a2a"),
    /:4: remotes\[0\]\.url: expected a URL whose host is a name/,
  ],
  [
    "a URL with a variable",
    remote("url: https://{HOST}/a2a"),
    /:4: remotes\[0\]\.url: expected a URL whose host is a name/,
  ],
  [
    "a URL that is too long",
    remote(`url: https://a.example/${"a".repeat(2_031)}`),
    /of at most 2048 characters, got a text of 2049 characters$/,
  ],
  [
    "a name with a space",
    "deployment: a\nremotes:\n  - name: a b",
    /:3: remotes\[0\]\.name: expected a name: 1 to 64/,
  ],
  [
    "a name twice",
    `${withUrl("streaming: true")}${SECOND.replace("NAME", "Auditor")}`,
    /^agents\.yaml:6: remotes\[1\]\.name: expected a name that no other remote has, whatever its case, got a text/,
  ],
  [
    "a hosted agent's name",
    `${withUrl("streaming: true")}${SECOND.replace("NAME", "Support")}`,
    /^agents\.yaml:6: remotes\[1\]\.name: expected another name: Support is an agent of this deployment$/,
  ],
  [
    "a hosted agent's runtime",
    `${withUrl("streaming: true")}${SECOND.replace("NAME", "acme-exec")}`,
    /remotes\[1\]\.name: expected another name/,
  ],
  [
    "the command's name",
    `${withUrl("streaming: true")}${SECOND.replace("NAME", "acme-cli")}`,
    /remotes\[1\]\.name: expected another name/,
  ],
  [
    "a skill twice",
    withUrl("skills: [a, { name: a }]"),
    /:5: remotes\[0\]\.skills\[1\]: expected each skill once, got a map$/,
  ],
  [
    "a header of ours",
    withUrl("headers: { Authorization: x }"),
    /:5: remotes\[0\]\.headers\.Authorization: expected a header that is not set by Sluice itself; credentials go into auth$/,
  ],
  [
    "a header of the signature",
    withUrl("headers: { X-Sluice-Nonce: x }"),
    /expected a header that is not set by Sluice itself/,
  ],
  [
    "a header of our own without a value",
    withUrl("headers: { Authorization }"),
    /:5: remotes\[0\]\.headers\.Authorization: expected a header that is not set by Sluice itself; credentials go into auth$/,
  ],
  [
    "a header without a value",
    withUrl("headers: { x-a: }"),
    /:5: remotes\[0\]\.headers\.x-a: expected a header's value, got nothing$/,
  ],
  ["a header that is none", withUrl("headers: { 'a b': x }"), /expected a header's name/],
  [
    "a header with a line's end",
    withUrl('headers: { x-a: "a\\r\\nb" }'),
    /:5: remotes\[0\]\.headers\.x-a: expected a header's value/,
  ],
  ["a path in an origin", allowing("https://a.example/x"), NOT_ALLOWABLE],
  ["an origin's default port", allowing("https://a.example:443"), NOT_ALLOWABLE],
  ["a range with bits behind its prefix", allowing("10.1.0.1/16"), NOT_ALLOWABLE],
  ["a range of IPv6 with bits behind its prefix", allowing("fd00::1/64"), NOT_ALLOWABLE],
  ["a range that is everything", allowing("0.0.0.0/0"), NOT_ALLOWABLE],
  ["a prefix that is too long", allowing("10.0.0.1/33"), NOT_ALLOWABLE],
  ["an address in disguise", allowing("2130706433.0.1"), NOT_ALLOWABLE],
  ["an address in octal", allowing("010.0.0.1"), NOT_ALLOWABLE],
  ["anything at all", allowing("'*'"), NOT_ALLOWABLE],
];

const CLOSED =
  /^agents\.yaml:4: remotes\[0\]\.url: expected a host whose address is public, or one that outbound\.allow has$/;
for (const host of [
  "127.0.0.1",
  "[::1]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "169.254.169.254",
  "10.1.0.7",
]) {
  const listed = (place: string) => `url: "https://${host}/"\noutbound: { allow: ["${place}"] }`;
  test(`no request goes to ${host} unless it is listed, and that is told before one is made`, () => {
    assert.match(complaint(remote(`url: "https://${host}/"`)), CLOSED);
    assert.match(complaint(remote(listed("192.168.0.0/16"))), CLOSED);
    read(remote(listed(`https://${host === "[::ffff:127.0.0.1]" ? "[::ffff:7f00:1]" : host}`)));
  });
}

test("so is an origin that must be listed", () => {
  const expected =
    /:4: remotes\[0\]\.url: expected https on port 443, or an origin that outbound\.allow has$/;
  for (const url of ["http://a.example/", "https://a.example:8443/"])
    assert.match(complaint(remote(`url: "${url}"`)), expected);
});

for (const [name, text, expected] of WRONG)
  test(`${name} is refused, by file, line and field`, () => assert.match(complaint(text), expected));
