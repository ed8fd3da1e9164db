import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { credentialFinding, remoteFindings } from "../../cli/doctor/a2a/remotes.ts";
import type { Standing } from "../../shared/cards/peer-facts.ts";
import { peersKnown } from "../../shared/cards/peers.ts";
import { type RemoteConfig, remotes } from "../../shared/config/remotes.ts";
import { memoryPeers } from "../../shared/testing/memory-peers.ts";
import { type Reached, watchReached } from "../support/reached.ts";
import { assertFound } from "./findings.ts";

let reached: Reached;
before(async () => {
  reached = await watchReached();
});
after(() => reached?.[Symbol.dispose]());

const NOW = Date.now();

const remoteOf = (credentials?: string): RemoteConfig => {
  const auth = credentials === undefined ? {} : { auth: { scheme: "bearer", credentials } };
  const [remote] = remotes.parse([{ name: "auditor", url: "https://a.example/a2a", ...auth }]);
  assert.ok(remote);
  return remote;
};

test("credentials that are not there, or only on this machine; they are never shown", async () => {
  const look = (credentials?: string, deployed = false, ofHost?: readonly string[]) =>
    credentialFinding(remoteOf(credentials), {
      ...{ deployed, ofHost },
      env: { TOKEN: "hunter2", EMPTY: " " },
      file: async (path) => (path === "/there" ? "hunter2" : Promise.reject(new Error("ENOENT"))),
      secret: async (name) => ({ set: true, unset: false })[name],
    });
  for (const [finding, expected] of [
    [await look(), /^ok credentials of auditor: none are needed$/],
    [await look("secret:set", true), /^ok .*: secret:set is set$/],
    [await look("secret:unset"), /^wrong .*: secret:unset has no value$/],
    [await look("secret:none"), /^wrong .*: secret:none does not exist$/],
    [await look("file:/there"), /^ok .*: file:\/there is set$/],
    [await look("file:/none"), /^wrong .*: file:\/none is empty or not there$/],
    [await look("env:TOKEN"), /^ok .*: env:TOKEN is set$/],
    [await look("env:EMPTY"), /^warning .*: env:EMPTY is empty or not there, as this command has it$/],
    [await look("env:OTHER", false, ["OTHER"]), /^ok .*: env:OTHER is set$/],
    [
      await look("env:TOKEN", false, []),
      /^wrong .*: env:TOKEN is empty or not there, as the local host was started$/,
    ],
    [await look("env:TOKEN", true), /^wrong .*: env:TOKEN is of this machine: functions in the cloud/],
    [await look("file:/there", true), /^wrong .*: file:\/there is of this machine/],
  ] as const) {
    assertFound([finding], expected);
    assert.doesNotMatch(JSON.stringify(finding), /hunter2/);
  }
});

test("cards that cannot be had, a key that waits, and agents that do not answer", async () => {
  const look = async (standing?: Omit<Standing, "id">, over: object = {}) => {
    const store = memoryPeers();
    const standings = standing === undefined ? [] : [{ id: "auditor", ...standing }];
    await store.putLedger("http", { standings }, 0);
    const [peer] = (await peersKnown(store, [remoteOf()], NOW)).peers;
    assert.ok(peer);
    return remoteFindings({ ...peer, ...over }, NOW);
  };
  const seen = { seen: NOW - 60_000, failures: 0 };
  const probe = { at: NOW - 1_000, reachable: true, latencyMs: 1 };
  assertFound(await look({ ...seen, probe }), /^ok remote auditor: answers, its card of 1 min ago$/);
  assertFound(
    await look({ ...seen, probe }, { notes: ["x"] }),
    /^ok .* 1 min ago; 1 thing on it is not as expected, see \.\/sluice peers auditor$/,
  );
  assertFound(
    await look({ ...seen, probe }, { notes: ["x", "y"] }),
    /; 2 things on it are not as expected, /,
  );
  assertFound(await look(), /^warning remote auditor: its card was not asked for yet$/);
  assertFound(
    await look({ failures: 3, failingSince: NOW, reason: "no\u001b[2J card" }),
    /^warning .*: its card could not be had 3 times in a row: no.* card$/,
  );
  assertFound(
    await look({ ...seen, failures: 1, offeredKey: "did:key:z6Mk" }),
    /^warning .*: another key has signed its card: did:key:z6Mk; the last good card is kept$/,
  );
  assertFound(
    await look({
      ...seen,
      failures: 1,
      reason: "gone",
      probe: { ...probe, reachable: false, error: "refused" },
    }),
    /^warning .*: its card could not be had 1 time in a row: gone; that of 1 min ago is kept$/,
    /^warning .*: did not answer 1\.0 s ago: refused$/,
  );
  assertFound(
    await look({ seen: NOW - 8_000_000, failures: 0, probe: { ...probe, at: NOW - 301_000 } }),
    /^warning .*: its card was asked for last 2 h/,
    /^warning .*: was looked after last 5 min/,
  );
  assertFound(
    await look({ ...seen, probe }, { supported: false }),
    /^warning .*: it speaks no A2A 0\.3 or 1\.0/,
  );
});

test("the advice fits the cause", async () => {
  const store = memoryPeers();
  const [peer] = (await peersKnown(store, [remoteOf()], NOW)).peers;
  assert.ok(peer);
  const todo = (reason: string) =>
    remoteFindings({ ...peer, failing: { failures: 1, reason } }, NOW)[0]?.todo;
  for (const [reason, advice] of [
    [
      "10.0.0.1: is an address that is not public; if that is meant, list it under outbound.allow",
      /list its origin/,
    ],
    ["credentials of the remote agent auditor: env:T is not there", /^put its credentials where/],
    ["/x.json: its signature counts for nothing: signature_missing", /peers accept auditor --unsigned$/],
    ["/x.json: its signature counts for nothing: signature_wrong", /^ask its owner/],
    ["/x.json: expected status 200, got 401", /takes the credentials/],
    ["/x.json: expected status 200, got 404", /^see that url in agents\.yaml/],
    ["/x.json: card: expected an object", /^tell its owner/],
    ["a.example: nobody listens there (ECONNREFUSED)", /^see that it runs/],
  ] as const)
    assert.match(todo(reason) ?? "", advice);
});

test("every failure that doctor can name of remote agents is produced here", async () => {
  const folder = join(import.meta.dirname, "../../cli/doctor/a2a");
  const unreached = await reached.unreached(folder, /(?<!function )\b(wrong|warning)\(/g);
  assert.deepEqual(
    unreached.filter((of) => of.startsWith("remotes.ts:")),
    [],
  );
});
