import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { outboundConfig } from "../../shared/config/outbound.ts";
import { MAX_URL } from "../../shared/http/destination.ts";
import {
  allowList,
  checkDestination,
  checkUrl,
  MAX_ALLOWED,
  NOTHING_ALLOWED,
} from "../../shared/http/index.ts";
import { refused, SECRET } from "./support/refused.ts";

const at =
  (...addresses: string[]) =>
  async () =>
    addresses;

test("without a list only https on port 443 is a destination, without a user", () => {
  for (const url of ["https://a.example", "https://a.example:443/x?y#z", "HTTPS://A.EXAMPLE"])
    assert.equal(checkUrl(url, NOTHING_ALLOWED).label, "a.example");
  for (const url of [
    "http://a.example/",
    "http://a.example:443/",
    "https://a.example:444/",
    "https://a.example:80/",
    "ftp://a.example/",
    "file:///etc/passwd",
    "data:text/plain,x",
    "ws://a.example/",
    "//a.example/",
    "a.example",
    "https://",
    "https://a.example./",
    "https://a.example../",
    `https://${SECRET}@a.example/`,
    `https://:${SECRET}@a.example/`,
    `https://a.example:x/${SECRET}`,
    `https://a b/${SECRET}`,
    "https://[fe80::1%25eth0]/",
  ])
    assert.throws(() => checkUrl(url, NOTHING_ALLOWED), refused("not_allowed"), url);
});

test("a URL and a name have a length", () => {
  const base = "https://a.example/";
  checkUrl(base.padEnd(MAX_URL, "x"), NOTHING_ALLOWED);
  assert.throws(() => checkUrl(base.padEnd(MAX_URL + 1, "x"), NOTHING_ALLOWED), refused("not_allowed"));
  const name = (length: number) => `${"a.".repeat(200)}`.slice(0, length - 8).concat("examples");
  checkUrl(`https://${name(253)}/`, NOTHING_ALLOWED);
  assert.throws(() => checkUrl(`https://${name(254)}/`, NOTHING_ALLOWED), refused("not_allowed"));
});

test("an origin of the list may be asked, with addresses of one's own, and nothing beside it", async () => {
  const allow = allowList([
    "http://127.0.0.1:4100",
    "https://agents.corp.example:8443",
    "b.example",
    "https://[fd00::5]:9443",
  ]);
  await checkDestination("http://127.0.0.1:4100/a2a", allow);
  await checkDestination("http://127.1:4100/a2a", allow);
  await checkDestination("https://agents.corp.example:8443/", allow, at("10.0.0.7", "1.1.1.1"));
  await checkDestination("https://b.example/", allow, at("192.168.0.1"));
  await checkDestination("https://[fd00::5]:9443/", allow);
  for (const url of [
    "http://127.0.0.1:4101/",
    "http://127.0.0.1/",
    "https://agents.corp.example:8444/",
    "http://agents.corp.example:8443/",
    "http://b.example/",
    "https://b.example:8443/",
  ])
    assert.throws(() => checkUrl(url, allow), refused("not_allowed"), url);
  for (const url of ["https://127.0.0.1/", "https://[fd00::6]/"])
    assert.throws(() => checkUrl(url, allow), refused("private_address"), url);
  await assert.rejects(
    checkDestination("https://x.b.example/", allow, at("192.168.0.1")),
    refused("private_address"),
  );
});

test("a listed name does not lead to where clouds keep credentials, an address or a range does", async () => {
  const named = allowList(["metadata.example"]);
  for (const address of ["169.254.169.254", "fe80::1", "0.0.0.0", "::ffff:10.0.0.1", "224.0.0.1"])
    await assert.rejects(
      checkDestination("https://metadata.example", named, at("10.0.0.1", address)),
      refused("private_address", { address }),
    );
  await checkDestination("http://169.254.169.254/", allowList(["http://169.254.169.254"]));
  await checkDestination("https://a.example/", allowList(["169.254.0.0/16"]), at("169.254.1.1"));
});

test("a range allows its addresses over https, whatever their name, and none beside them", async () => {
  const allow = allowList(["10.20.0.0/16", "fd00:1::/32", "192.168.7.7"]);
  for (const address of ["10.20.0.0", "10.20.255.255", "fd00:1::", "fd00:1:ffff::1", "192.168.7.7"]) {
    const literal = address.includes(":") ? `[${address}]` : address;
    await checkDestination(`https://${literal}/`, allow);
    await checkDestination("https://a.example/", allow, at("1.1.1.1", address));
  }
  for (const address of ["10.19.255.255", "10.21.0.0", "fd00:2::", "192.168.7.8", "::ffff:10.20.0.1"])
    await assert.rejects(
      checkDestination("https://a.example/", allow, at("10.20.0.1", address)),
      refused("private_address", { address }),
    );
  await checkDestination("https://a.example/", allowList(["128.0.0.0/1", "::/1"]), at("169.254.0.1", "::1"));
  assert.throws(() => checkUrl("http://10.20.0.1/", allow), refused("not_allowed"));
  assert.throws(() => checkUrl("https://10.20.0.1:8443/", allow), refused("not_allowed"));
});

const UNSOUND = [
  "",
  "*",
  "*.example.com",
  "https://*.example.com",
  "https://a.example/path",
  "https://a.example?x",
  "https://a.example/#x",
  `https://${SECRET}@a.example`,
  "ftp://a.example",
  "https://",
  "a.example.",
  "a.example:8443",
  "127.0.0.1:4177",
  "[fd00::5]:9443",
  "a b",
  "10.0.0.0/33",
  "10.0.0.1/8",
  "10.0.0.0/",
  "10.0.0.0/8/8",
  "10.0.0.0/-1",
  "10.0.0.0/+8",
  "010.0.0.0/8",
  "10/8",
  "fd00::/129",
  "fd00::1/64",
  "fe80::%eth0/64",
  "\\\\a.example",
];

test("what is neither origin, host nor range is an error that names its place and quotes nothing", () => {
  for (const text of UNSOUND) {
    assert.throws(
      () => allowList(["a.example", text]),
      (error) => error instanceof Error && /^outbound\.allow\[1\]: expected an origin/.test(error.message),
      text,
    );
    assert.equal(outboundConfig.safeParse({ allow: [text] }).success, false, text);
  }
});

test("any text is a place or refused, and an origin that is read is one that can be asked", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.webUrl(), fc.ipV4(), fc.ipV6(), fc.domain()), (text) => {
      const { success } = outboundConfig.safeParse({ allow: [text] });
      if (!success) return assert.throws(() => allowList([text]));
      for (const origin of allowList([text]).origins) checkUrl(origin, allowList([text]));
    }),
  );
});

test("the section of the file has a list of bounded length, and nothing else", () => {
  assert.deepEqual(outboundConfig.parse({}), { allow: [] });
  const hosts = Array.from({ length: MAX_ALLOWED + 1 }, (_, i) => `a${i}.example`);
  assert.equal(outboundConfig.safeParse({ allow: hosts.slice(1) }).success, true);
  assert.equal(outboundConfig.safeParse({ allow: hosts }).success, false);
  assert.equal(outboundConfig.safeParse({ deny: [] }).success, false);
});
