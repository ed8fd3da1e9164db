import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { addressKind } from "../../shared/http/addresses.ts";
import { allowList, checkDestination, checkUrl, guardedFetch } from "../../shared/http/index.ts";
import { refused } from "./support/refused.ts";

const ALL = allowList([]);

/** The first and the last of each range that is not public, and who its neighbours are when these are public. */
const IPV4: readonly (readonly [
  range: string,
  first: string,
  last: string,
  before?: string,
  after?: string,
])[] = [
  ["0/8", "0.0.0.0", "0.255.255.255", undefined, "1.0.0.0"],
  ["10/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"],
  ["100.64/10", "100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"],
  ["127/8", "127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"],
  ["169.254/16", "169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"],
  ["172.16/12", "172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"],
  ["192.0.0/24", "192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"],
  ["192.0.2/24", "192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0"],
  ["192.88.99/24", "192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0"],
  ["192.168/16", "192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"],
  ["198.18/15", "198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"],
  ["198.51.100/24", "198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0"],
  ["203.0.113/24", "203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0"],
  ["224/4", "224.0.0.0", "239.255.255.255", "223.255.255.255"],
  ["240/4", "240.0.0.0", "255.255.255.255"],
];
const F = "ffff:ffff:ffff:ffff:ffff:ffff";
const IPV6: typeof IPV4 = [
  ["::/128 and ::1", "::", "::1"],
  ["::/96, IPv4-compatible", "::7f00:1", "::ffff:ffff"],
  ["::ffff:0:0/96, IPv4-mapped", "::ffff:0:0", "::ffff:ffff:ffff"],
  ["::ffff:0:0:0/96, IPv4-translated", "::ffff:0:7f00:1", "::ffff:0:a00:1"],
  ["64:ff9b::/96, NAT64", "64:ff9b::", "64:ff9b::ffff:ffff"],
  ["64:ff9b:1::/48, local NAT64", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"],
  ["100::/64, discard", "100::", "100::ffff:ffff:ffff:ffff"],
  ["2001::/23, with Teredo", "2001::", `2001:1ff:${F}`, `2000:ffff:${F}`, "2001:200::"],
  ["2001:db8::/32, documentation", "2001:db8::", `2001:db8:${F}`, `2001:db7:${F}`, "2001:db9::"],
  ["2002::/16, 6to4", "2002::", `2002:ffff:${F}`, `2001:ffff:${F}`, "2003::"],
  ["3fff::/20, documentation", "3fff::", `3fff:fff:${F}`, `3ffe:ffff:${F}`, "3fff:1000::"],
  ["beyond 2000::/3", "4000::", `fbff:ffff:${F}`, `3fff:ffff:${F}`],
  ["5f00::/16, segment routing", "5f00::", `5f00:ffff:${F}`],
  ["fc00::/7, unique local", "fc00::", `fdff:ffff:${F}`],
  ["fe80::/10, link-local", "fe80::", `febf:ffff:${F}`],
  ["fec0::/10, site-local", "fec0::", `feff:ffff:${F}`],
  ["ff00::/8, multicast", "ff00::", `ffff:ffff:${F}`],
];

for (const [range, first, last, before, after] of [...IPV4, ...IPV6])
  test(`${range} is not public, and what is beside it is`, () => {
    for (const address of [first, last]) assert.notEqual(addressKind(address), "public", address);
    for (const address of [before, after])
      if (address !== undefined) assert.equal(addressKind(address), "public", address);
  });

test("what is on the internet is public, and what is no address is not", () => {
  for (const address of [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.215.14",
    "2606:4700:4700::1111",
    "2a00:1450:4001::200e",
  ])
    assert.equal(addressKind(address), "public", address);
  for (const address of ["", "localhost", "1.1.1", "010.1.1.1", "1.1.1.1.", "2606:4700::1%eth0", "[2a00::1]"])
    assert.equal(addressKind(address), "never", address);
});

test("of what is not public, only networks of one's own can be listed by a name", () => {
  for (const address of [
    "127.0.0.1",
    "10.1.2.3",
    "172.20.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "::1",
    "fd00::1",
  ])
    assert.equal(addressKind(address), "own", address);
  for (const address of ["169.254.169.254", "169.254.170.2", "fe80::1", "0.0.0.0", "::", "::ffff:10.0.0.1"])
    assert.equal(addressKind(address), "never", address);
});

// --- Spellings.

const octet = fc.integer({ min: 0, max: 255 });
const hidden = fc.oneof(
  fc.tuple(fc.constantFrom(0, 10, 127), octet, octet, octet),
  fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), octet, octet),
  fc.tuple(fc.constant(169), fc.constant(254), octet, octet),
  fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), octet, octet),
  fc.tuple(fc.constant(192), fc.constant(168), octet, octet),
  fc.tuple(fc.constant(192), fc.constant(0), fc.constantFrom(0, 2), octet),
  fc.tuple(fc.constant(198), fc.constantFrom(18, 19), octet, octet),
  fc.tuple(fc.integer({ min: 224, max: 255 }), octet, octet, octet),
);

/** A part of an address in each base that hosts are read in. */
const BASES: readonly ((part: number) => string)[] = [
  (part) => String(part),
  (part) => `0${part.toString(8)}`,
  (part) => `000${part.toString(8)}`,
  (part) => `0x${part.toString(16)}`,
  (part) => `0X00${part.toString(16).toUpperCase()}`,
];
const bases = fc.array(fc.constantFrom(...BASES), { minLength: 4, maxLength: 4 });

/** The last of fewer than four parts stands for all that are left (WHATWG URL Standard, IPv4 parser). */
const shortened = fc.tuple(hidden, fc.integer({ min: 1, max: 4 }), bases).map(([octets, parts, write]) => {
  const rest = octets.slice(parts - 1).reduce((sum, part) => sum * 256 + part, 0);
  return [...octets.slice(0, parts - 1), rest].map((part, i) => write[i]?.(part)).join(".");
});

const fullwidth = (text: string) =>
  text.replaceAll(/[0-9a-zA-Z]/g, (char) => String.fromCodePoint((char.codePointAt(0) ?? 0) + 0xfee0));
const percent = (text: string) =>
  text.replaceAll(/./g, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
const circled = (text: string) =>
  text.replaceAll(/[1-9]/g, (digit) => String.fromCodePoint(0x2460 + Number(digit) - 1));
const DISGUISES: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => `${text}.`,
  fullwidth,
  circled,
  (text) => text.replaceAll(".", "。"),
  (text) => text.replaceAll(".", "．"),
  percent,
  (text) => percent(text.slice(0, 2)) + text.slice(2),
  (text) => `\u00ad${text}`,
  (text) => `${text.slice(0, 1)}\t${text.slice(1)}`,
  (text) => `${text}:443`,
];
const spelled = fc.tuple(shortened, fc.constantFrom(...DISGUISES)).map(([text, disguise]) => disguise(text));

const hex = (high: number, low: number) => (high * 256 + low).toString(16);
/** IPv6 addresses that carry an IPv4 address, and others that are not public. */
const inSix = fc
  .tuple(
    hidden,
    fc.constantFrom(
      (dotted: string) => `::ffff:${dotted}`,
      (dotted: string) => `0:0:0:0:0:FFFF:${dotted}`,
      (dotted: string) => `::${dotted}`,
      (dotted: string) => `::ffff:0:${dotted}`,
      (dotted: string) => `64:ff9b::${dotted}`,
      (dotted: string) => `64:ff9b:1::${dotted}`,
      (_: string, short: string) => `2002:${short}::1`,
      (_: string, short: string) => `2001:0:${short}::1`,
      (_: string, short: string) => `2001:0:4136:e378:8000:63bf:${short}`,
      (_: string, short: string) => `::ffff:${short}`,
      (_: string, short: string) => `fe80::${short}`,
      (_: string, short: string) => `fd00:${short}::`,
      (_: string, short: string) => `ff02::${short}`,
      () => "::1",
      () => "::",
      () => "fe80::1%25eth0",
      () => "fe80::1%eth0",
    ),
  )
  .map(([[a, b, c, d], write]) => `[${write(`${a}.${b}.${c}.${d}`, `${hex(a, b)}:${hex(c, d)}`)}]`);

test("no spelling of an address that is not public gets through, and none is taken for a name", async () => {
  const asked: string[] = [];
  const fetch = guardedFetch({
    resolve: async (host) => {
      asked.push(host);
      return ["127.0.0.1"];
    },
  });
  await fc.assert(
    fc.asyncProperty(fc.oneof(spelled, inSix), async (host) => {
      await assert.rejects(
        fetch(`https://${host}/`),
        refused(["private_address", "not_allowed"], { sent: false }),
      );
      assert.deepEqual(asked, []);
    }),
    { numRuns: 500 },
  );
});

test("a name is refused when any of its addresses is not public, whichever it is", async () => {
  const bad = fc.oneof(
    hidden.map((octets) => octets.join(".")),
    hidden.map((octets) => `::ffff:${octets.join(".")}`),
    fc.constantFrom("::1", "fe80::1%eth0", "fd00::1", "2002:7f00:1::", "64:ff9b::a00:1", "not an address"),
  );
  const good = fc.array(fc.constantFrom("1.1.1.1", "2606:4700:4700::1111", "93.184.215.14"), {
    maxLength: 4,
  });
  await fc.assert(
    fc.asyncProperty(good, bad, good, async (before, address, after) => {
      const resolve = async () => [...before, address, ...after];
      await assert.rejects(
        guardedFetch({ resolve })("https://rebind.example/"),
        refused("private_address", { host: "rebind.example", address, sent: false }),
      );
      await assert.rejects(
        checkDestination("https://rebind.example/", ALL, resolve),
        refused("private_address"),
      );
    }),
  );
});

test("names that every machine gives to itself are refused by their addresses", async () => {
  for (const name of ["localhost", "LOCALHOST"])
    await assert.rejects(
      guardedFetch()(`https://${name}/`),
      refused("private_address", { host: "localhost" }),
    );
});

test("a name with public addresses alone is a destination", async () => {
  await checkDestination("https://agents.example/a2a", ALL, async () => ["1.1.1.1", "2606:4700:4700::1111"]);
  assert.equal(checkUrl("https://1.1.1.1/", ALL).host, "1.1.1.1");
  assert.equal(checkUrl("https://[2606:4700:4700::1111]/", ALL).host, "2606:4700:4700::1111");
});
