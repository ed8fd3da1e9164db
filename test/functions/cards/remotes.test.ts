import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { everyMinute, type MinuteDeps } from "../../../functions/cards/minute.ts";
import { refreshOnDemand } from "../../../functions/cards/refresh.ts";
import { goRound, type RemotesDeps } from "../../../functions/cards/remotes.ts";
import { keyUrl } from "../../../shared/cards/did-key.ts";
import { acceptances, acceptKey } from "../../../shared/cards/dynamodb-acceptance.ts";
import { dynamoNotes } from "../../../shared/cards/dynamodb-notes.ts";
import { dynamoPeers } from "../../../shared/cards/dynamodb-peers.ts";
import type { Peer } from "../../../shared/cards/peers.ts";
import { peersKnown } from "../../../shared/cards/peers.ts";
import { SigningKey } from "../../../shared/cards/signing-key.ts";
import { type DeploymentConfig, parseDeployment } from "../../../shared/config/deployment.ts";
import { verifyRequest } from "../../../shared/http/verify.ts";
import { NatsError } from "../../../shared/nats/errors.ts";
import { credentialSources } from "../../../shared/remotes/credentials.ts";
import type { LogFields } from "../../../shared/telemetry/fields.ts";
import { hosted } from "../../cards/support.ts";
import { serveHttp } from "../../remotes/servers/http.ts";
import {
  legacyServer,
  pollingServer,
  type RemoteServer,
  streamingServer,
} from "../../remotes/servers/index.ts";
import { startTable } from "../../support/table.ts";

/** The rounds through remote agents: real A2A servers, and a real table. */

let table: Awaited<ReturnType<typeof startTable>>;
let auditor: RemoteServer;
let planner: RemoteServer;
let elder: RemoteServer;
before(async () => {
  [table, auditor, planner, elder] = await Promise.all([
    startTable(),
    streamingServer({ card: { name: "Auditor", skills: ["audit", "sbom"] } }),
    pollingServer({ card: { name: "Planner" } }),
    legacyServer({ card: { name: "Elder" } }),
  ]);
});
after(async () => {
  await Promise.all([auditor, planner, elder].map((of) => of?.close()));
  await table.stop();
});

const told = new Map<string, number[]>();
const said: { message: string; fields: LogFields | undefined }[] = [];
const say = (message: string, fields?: LogFields) => void said.push({ message, fields });
const note = (name: string, value = 1) => void told.set(name, [...(told.get(name) ?? []), value]);
const telemetry = { debug() {}, info: say, warn: say, error: say, count: note, measure: note };
afterEach(async () => {
  told.clear();
  said.length = 0;
  for (const server of [auditor, planner, elder]) {
    server.intercept(undefined);
    server.requests.length = 0;
  }
  for (const name of (await store().facts("http")).keys()) {
    const version = (await store().facts("http")).get(name)?.version ?? 0;
    await store().forget({ transport: "http", id: name }, version);
  }
  await store().putLedger("http", { standings: [] }, (await store().ledger("http")).version);
});

const store = () => dynamoPeers(table.access);
const SECRET = "s".repeat(32);
const ENV = { TOKEN: "of-the-bearer", KEY: "of-the-api", SHARED: `acme ${SECRET}` };

interface Written {
  readonly name: string;
  readonly url: string;
  readonly [more: string]: unknown;
}

/** A deployment with these remote agents, as it would be bundled. */
function deploymentOf(...remotes: readonly Written[]): DeploymentConfig {
  const allow = [...new Set(remotes.map(({ url }) => new URL(url).origin))];
  return parseDeployment({ deployment: "acme", agents: [], remotes, outbound: { allow } });
}

function deps(deployment: DeploymentConfig, over: Partial<RemotesDeps> = {}): RemotesDeps {
  const { remotes = [], outbound } = deployment;
  return {
    ...{ remotes, outbound, telemetry, store: store(), now: Date.now },
    sources: credentialSources(ENV),
    timing: { scale: 1 },
    correlationId: "run-1",
    signal: AbortSignal.timeout(60_000),
    ...over,
  };
}

async function peer(deployment: DeploymentConfig, name: string): Promise<Peer> {
  const { peers } = await peersKnown(store(), deployment.remotes ?? [], Date.now());
  return peers.find(({ id }) => id === name) ?? assert.fail(`nobody is ${name}`);
}

async function refreshed(deployment: DeploymentConfig, over: Partial<RemotesDeps> = {}) {
  const answer = await refreshOnDemand({ refresh: "all" }, deps(deployment, over));
  assert.ok("refreshed" in answer, JSON.stringify(answer));
  return answer;
}

test("agents are found over both paths, as who we are to each; one without its credential is asked nothing", async () => {
  const of = deploymentOf(
    { name: "auditor", url: auditor.url, auth: { scheme: "bearer", credentials: "env:TOKEN" } },
    { name: "planner", url: planner.url, auth: { credentials: "env:KEY" }, headers: { "X-Team": "a" } },
    { name: "elder", url: elder.url, auth: { scheme: "hmac", credentials: "env:SHARED" } },
    { name: "nobody", url: `${planner.origin}/nobody`, auth: { credentials: "env:MISSING" } },
  );
  await goRound(deps(of));
  const asked = [auditor, planner, elder].map(({ requests }) => requests[0]?.headers ?? {});
  assert.deepEqual(
    [asked[0]?.authorization, asked[1]?.["x-api-key"], asked[1]?.["x-team"], asked[2]?.["x-correlation-id"]],
    ["Bearer of-the-bearer", "of-the-api", "a", "run-1"],
  );
  const [signed = assert.fail()] = elder.requests;
  const { keyId } = await verifyRequest(
    {
      method: signed.method,
      url: new URL(signed.path, elder.origin),
      headers: new Headers(signed.headers),
      body: new Uint8Array(),
    },
    { keyOf: async () => Buffer.from(SECRET), nonces: { remember: async () => true } },
  );
  assert.equal(keyId, "acme");
  assert.ok(![...auditor.requests, ...planner.requests].some(({ path }) => path.startsWith("/nobody")));

  const states = await Promise.all(["auditor", "planner", "elder", "nobody"].map((name) => peer(of, name)));
  assert.deepEqual(
    states.map(({ name, status, health }) => [name, status.state, health?.reachable]),
    [
      ["Auditor", "live", true],
      ["Planner", "live", true],
      ["Elder", "live", true],
      ["nobody", "unseen", false],
    ],
  );
  assert.match(
    states[3]?.failing?.reason ?? "",
    /credentials of the remote agent nobody: env:MISSING is not there/,
  );
  assert.deepEqual(
    said.map(({ message, fields }) => [message, fields?.remote]).toSorted(),
    [
      ["a remote agent does not answer", "nobody"],
      ["a remote agent's card cannot be refreshed", "nobody"],
      ...["auditor", "elder", "planner"].map((name) => ["a remote agent's card has changed", name]),
      ["a remote agent's credentials cannot be had", "nobody"],
    ].toSorted(),
  );
  assert.ok(!JSON.stringify(said).includes("of-the-"), "no secret is said");
  assert.deepEqual(
    ["RemotesRefreshed", "RemotesFailed", "RemoteSkillsAdded", "RemotesUnreachable", "RemotesStale"].map(
      (name) => told.get(name),
    ),
    [[3], [1], [4], [1], [0]],
  );
});

test("skills come and go with the card, those of the file stay, and nothing is written when nothing has changed", async () => {
  const of = deploymentOf({ name: "auditor", url: auditor.url, skills: ["filed"] });
  const skills = async () => (await peer(of, "auditor")).skills.map(({ id }) => id);
  await refreshed(of);
  assert.deepEqual(await skills(), ["filed", "audit", "sbom"]);
  const at = Date.now();
  const versions = async () => [
    (await store().facts("http")).get("auditor")?.version,
    (await store().ledger("http")).version,
  ];
  const before = await versions();
  const again = await refreshed(of, { now: () => at });
  assert.deepEqual([again.refreshed[0]?.outcome, await versions()], ["unchanged", before]);
  await auditor.setCard({ skills: ["audit", "vex"] });
  const changed = await refreshed(of);
  assert.deepEqual([changed.refreshed[0]?.added, changed.refreshed[0]?.removed], [["vex"], ["sbom"]]);
  assert.deepEqual(await skills(), ["filed", "audit", "vex"]);
  await auditor.setCard({});
});

test("another key is refused until an operator accepts it, which is noted; what is not signed any more, too", async () => {
  const [first, second] = [SigningKey.make(new Date()), SigningKey.make(new Date())];
  const signedBy = ({ key, did }: SigningKey) => planner.setCard({ signer: { key, kid: keyUrl(did) } });
  const of = deploymentOf({ name: "planner", url: planner.url });
  const outcome = async () => (await refreshed(of)).refreshed[0];
  const accept = async (key: string | undefined) => {
    const found = (await store().facts("http")).get("planner");
    assert.ok(found?.value.transport === "http");
    const known = { version: found.version, value: found.value };
    assert.ok(await acceptKey(table.access, known, { key, at: Date.now(), by: "anna" }));
    assert.equal(await acceptKey(table.access, known, { key, at: Date.now() + 1, by: "bob" }), undefined);
  };
  await signedBy(first);
  await outcome();
  assert.deepEqual((await peer(of, "planner")).signature.key, first.did);
  await signedBy(second);
  const refused = await outcome();
  assert.deepEqual([refused?.outcome, refused?.offeredKey], ["failed", second.did]);
  const kept = await peer(of, "planner");
  assert.deepEqual([kept.signature.key, kept.failing?.offeredKey], [first.did, second.did]);
  await accept(second.did);
  assert.equal((await outcome())?.outcome, "updated");
  const taken = await peer(of, "planner");
  assert.deepEqual(
    [taken.signature, taken.failing],
    [{ state: "valid", key: second.did, kid: keyUrl(second.did) }, undefined],
  );
  await planner.setCard({});
  assert.match((await outcome())?.warning ?? "", /signature_missing/);
  await accept(undefined);
  await outcome();
  assert.equal((await peer(of, "planner")).signature.state, "unsigned");
  const noted = await acceptances(table.access, "planner", 10);
  assert.deepEqual(
    noted.map(({ by, before, after: key }) => [by, before, key]),
    [
      ["anna", second.did, undefined],
      ["anna", first.did, second.did],
    ],
  );
});

test("an agent whose card cannot be had keeps the last good one, says since when, is stale at the third time, and comes back", async () => {
  const of = deploymentOf({ name: "auditor", url: auditor.url });
  await refreshed(of);
  const began = Date.now();
  auditor.intercept((_, response) => {
    response.writeHead(503).end();
    return true;
  });
  const states: string[] = [];
  for (let i = 0; i < 3; i++) {
    await refreshed(of);
    states.push((await peer(of, "auditor")).status.state);
  }
  assert.deepEqual(states, ["live", "live", "stale"]);
  const failing = await peer(of, "auditor");
  assert.deepEqual([failing.name, failing.failing?.failures], ["Auditor", 3]);
  assert.ok((failing.failing?.failingSince ?? 0) >= began);
  const { reason } = said.at(-1)?.fields ?? {};
  assert.match(String(reason), /agent-card\.json: expected status 200, got 503; .*agent\.json: .* got 503$/);
  await goRound(deps(of));
  assert.deepEqual([told.get("RemotesStale"), told.get("RemotesUnreachable")], [[1], [1]]);
  auditor.intercept(undefined);
  await refreshed(of);
  assert.equal((await peer(of, "auditor")).status.state, "live");
  await goRound(deps(of));
  assert.deepEqual(said.at(-1), { message: "a remote agent answers again", fields: { remote: "auditor" } });
});

test("slow, huge, looping, lying and dead ones keep nobody from being refreshed, and what came in time is kept", async () => {
  const bad = await serveHttp(async ({ path }, response) => {
    const [, kind] = path.split("/");
    if (kind === "huge") return void response.end(" ".repeat(400_000));
    if (kind === "looping") return void response.writeHead(302, { location: path }).end();
    if (kind === "lying")
      return void response.setHeader("content-type", "application/json").end('{"name":"x"}');
    if (kind === "away") return void response.writeHead(302, { location: "http://169.254.169.254/" }).end();
    response.write("{");
    const drip = setInterval(() => response.write(" "), 50);
    response.on("close", () => clearInterval(drip));
  });
  const kinds = ["slow", "huge", "looping", "lying", "away"];
  const of = deploymentOf(
    { name: "auditor", url: auditor.url },
    ...kinds.map((name) => ({ name, url: `${bad.origin}/${name}/a2a` })),
    { name: "dead", url: "http://127.0.0.1:1/a2a" },
  );
  try {
    const { refreshed: all, late } = await refreshed(of, { signal: AbortSignal.timeout(4_000) });
    assert.deepEqual(
      all.map(({ name, outcome }) => `${name} ${outcome}`),
      ["auditor updated", "huge failed", "looping failed", "lying failed", "away failed", "dead failed"],
    );
    assert.deepEqual(late, ["slow"]);
    const reasonOf = async (name: string) => (await peer(of, name)).failing?.reason ?? "";
    assert.match(await reasonOf("huge"), /expected at most 262144 bytes/);
    assert.match(await reasonOf("lying"), /card\.\w+/);
    assert.match(await reasonOf("looping"), /redirect/);
    assert.match(await reasonOf("away"), /169\.254\.169\.254/);
    assert.equal((await peer(of, "auditor")).status.state, "live");
  } finally {
    await bad.close();
  }
});

test("what is asked for by an unknown name is refused with the nearest, and an event that is none is an error", async () => {
  const of = deploymentOf({ name: "auditor", url: auditor.url });
  assert.deepEqual(await refreshOnDemand({ refresh: ["audtor"] }, deps(of)), {
    refused: 'no remote agent "audtor"; did you mean auditor?',
  });
  assert.deepEqual(await refreshOnDemand({ refresh: ["x"] }, deps(deploymentOf())), {
    refused: 'no remote agent "x"; the deployment names none',
  });
  const strange = ["../x", "", "hm ", "*", "__proto__", "\u001b[2J", "n".repeat(81)];
  assert.deepEqual(
    await Promise.all(strange.map((name) => refreshOnDemand({ refresh: [name] }, deps(of)))),
    ["../x", "", "hm ", "*", "__proto__", "\\u001b[2J", `${"n".repeat(80)}…`].map((shown) => ({
      refused: `no remote agent "${shown}"; there are auditor`,
    })),
  );
  assert.deepEqual(await refreshOnDemand({ refresh: "all" }, deps(deploymentOf())), {
    refreshed: [],
    late: [],
  });
  for (const refresh of [[], "auditor", [1], undefined])
    await assert.rejects(refreshOnDemand({ refresh }, deps(of)), /refresh/);
  assert.equal(auditor.requests.length, 0);
});

function minute(deployment: DeploymentConfig, over: Partial<MinuteDeps> = {}): MinuteDeps {
  return {
    connection: async () => {
      throw new NatsError("nats_unreachable", "NATS is away");
    },
    ...{ deployment, telemetry, now: Date.now, access: table.access, env: ENV },
    notes: dynamoNotes(table.access),
    vault: async () => undefined,
    servers: ["tls://nats.example:4222"],
    instance: "sluice-acme",
    startedAt: 0,
    timing: { scale: 1, marginMs: 10_000 },
    ...over,
  };
}

test("while NATS is away remote agents are asked all the same, and the run fails for our cards", async () => {
  const of = { ...deploymentOf({ name: "auditor", url: auditor.url }), agents: [hosted("support")] };
  const run = { id: "r", until: Date.now() + 3_000 };
  await assert.rejects(everyMinute(minute(of), run), /NATS is away/);
  const { status, health } = await peer(of, "auditor");
  assert.deepEqual([status.state, health?.reachable], ["live", true]);
});

test("a round that fails is told, and touches nothing else", async () => {
  const of = deploymentOf({ name: "auditor", url: auditor.url });
  const broken = { ...store(), ledger: async () => assert.fail("the table is away") };
  await goRound(deps(of, { store: broken }));
  assert.deepEqual(
    said.map(({ fields }) => [fields?.round, fields?.errorMessage]),
    ["refresh", "probe", "count"].map((round) => [round, "the table is away"]),
  );
  assert.deepEqual(told.get("PeerRoundsFailed"), [1, 1, 1]);
});
