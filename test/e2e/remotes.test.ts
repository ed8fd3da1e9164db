import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { jetstream } from "@nats-io/jetstream";
import * as z from "zod";
import { readHome } from "../../cli/home.ts";
import { synthesize } from "../../infra/synth.ts";
import { keyUrl } from "../../shared/cards/did-key.ts";
import { SigningKey } from "../../shared/cards/signing-key.ts";
import { bytesOf, peerRecord } from "../cards/support/records.ts";
import { onTerminal, skip } from "../cli/on-terminal.ts";
import { run } from "../cli/run.ts";
import { legacyServer, type RemoteServer, streamingServer } from "../remotes/servers/index.ts";
import { type Sluice, startSluice } from "../support/sluice.ts";
import { until } from "../support/until.ts";

/** Remote agents through the whole product: the function on its schedule, as who it is there, and the command. */

const cwd = mkdtempSync(join(tmpdir(), "sluice-remotes-"));
const VARIABLE = "SLUICE_TEST_AUDITOR_KEY";
const AGENT = `import { defineAgent, skill } from "sluice";
  import * as z from "zod";
  const of = { name: "", description: "", input: z.string(), run: async () => "" };
  export default defineAgent({ id: "support", description: "", skills: { task: skill(of) } });`;

const [first, second] = [SigningKey.make(new Date()), SigningKey.make(new Date())];
const by = ({ key, did }: SigningKey) => ({ key, kid: keyUrl(did) });

let auditor: RemoteServer;
let elder: RemoteServer;
let sluice: Sluice;
before(async () => {
  [auditor, elder] = await Promise.all([
    streamingServer({ card: { name: "Auditor", skills: ["audit"], signer: by(first) } }),
    legacyServer({ card: { name: "Elder" } }),
  ]);
  mkdirSync(join(cwd, "agents"));
  mkdirSync(join(cwd, ".sluice"));
  writeFileSync(join(cwd, "agents/support.ts"), AGENT);
  writeFileSync(join(cwd, "elder.key"), "of-the-file\n");
  writeFileSync(
    join(cwd, "agents.yaml"),
    `deployment: acme
remotes:
  - { name: auditor, url: "${auditor.url}", auth: { credentials: env:${VARIABLE} }, skills: [filed] }
  - { name: elder, url: "${elder.url}", auth: { scheme: bearer, credentials: file:elder.key } }
outbound: { allow: ["${auditor.origin}", "${elder.origin}"] }
`,
  );
  process.env[VARIABLE] = "of-the-variable";
  const files = { config: join(cwd, "agents.yaml"), agentsDir: join(cwd, "agents") };
  const { assemblyDir } = await synthesize({
    agentsDir: files.agentsDir,
    agentsYaml: files.config,
    outDir: join(cwd, "cdk.out"),
  });
  // At the pace of the cloud: what happens is what is asked for here, and the first run of the schedule.
  sluice = await startSluice({ dataDir: join(cwd, ".sluice"), files, assemblyDir, timeScale: 1 });
});
after(async () => {
  delete process.env[VARIABLE];
  await sluice?.stop();
  await Promise.all([auditor, elder].map((of) => of?.close()));
  rmSync(cwd, { recursive: true, force: true });
});

const shape = z.looseObject({
  peer: z.string(),
  transport: z.enum(["nats", "http"]),
  state: z.string(),
  skills: z.array(z.looseObject({ id: z.string() })).nullable(),
  signature: z.looseObject({ state: z.string() }).nullable(),
});
async function peers(...args: string[]): Promise<z.infer<typeof shape>[]> {
  const { json, stderr, code } = await run(["peers", ...args, "--json"], { cwd });
  assert.equal(code, 0, stderr);
  return z.array(shape).parse(json());
}
const logged = () => sluice.lines.filter((line) => line.startsWith("cards:"));

test("the host tells which variables with credentials it has, and not what is in them", () => {
  assert.deepEqual(readHome(cwd).stack?.credentialVariables, [VARIABLE]);
  assert.doesNotMatch(readFileSync(join(cwd, ".sluice/host.json"), "utf8"), /of-the-variable/);
});

test("agents and peers are found by the first run, as who we are to each, and the command shows them", async () => {
  const holds = { publishedAt: null, expiresAt: null };
  await until("the bucket is there", async () => {
    const put = jetstream(sluice.peer.nc).publish("$KV.A2A_PEERS.bob", bytesOf(peerRecord("bob", holds)));
    return put.then(
      () => true,
      () => false,
    );
  });
  const found = await until(
    "all are live",
    async () => {
      const all = await peers();
      return all.length === 3 && all.every(({ state }) => state === "live") && all;
    },
    { seen: logged },
  );
  assert.deepEqual(
    found.map(({ peer, transport, signature, skills }) => [
      peer,
      transport,
      signature?.state,
      skills?.map(({ id }) => id).join(),
    ]),
    [
      ["bob", "nats", "unsigned", found[0]?.skills?.map(({ id }) => id).join()],
      ["auditor", "http", "valid", "filed,audit"],
      ["elder", "http", "unsigned", "script"],
    ],
  );
  assert.equal(auditor.requests[0]?.headers["x-api-key"], "of-the-variable");
  assert.equal(elder.requests[0]?.headers.authorization, "Bearer of-the-file");
  assert.ok(elder.requests[0]?.headers["x-correlation-id"]);
});

test("peers on NATS are looked for and counted, and nothing is said of who cannot be", async () => {
  assert.deepEqual(await sluice.host.invoke("cards", {}), { ok: true, payload: "null" });
  const { store } = sluice.host.metrics;
  assert.ok(store);
  const lines = logged().filter((line) => line.includes('"PeersLive"'));
  assert.ok(
    lines.some((line) => /"PeersLive":1\b/.test(line)),
    lines.join("\n"),
  );
  assert.deepEqual(
    logged().filter((line) => /"level":"(WARN|ERROR)"/.test(line)),
    [],
  );
});

test("peers refresh fetches a card now; another key waits until peers accept has taken it", async () => {
  await auditor.setCard({ skills: ["audit", "sbom"] });
  const again = await run(["peers", "refresh", "auditor"], { cwd });
  assert.deepEqual([again.stdout, again.code], ["auditor: updated: +sbom\n", 0], again.stderr);

  await auditor.setCard({ skills: ["audit"], signer: by(second) });
  const refused = await run(["peers", "refresh"], { cwd });
  assert.equal(refused.code, 1, refused.stderr);
  assert.match(refused.stdout, /^remote agent auditor: .* signed by another key than before/);
  assert.match(refused.stdout, /\nelder: its card has not changed\n$/);
  const shown = await run(["peers", "auditor"], { cwd });
  assert.match(shown.stdout, new RegExp(`^offered +${second.did}$`, "m"));
  assert.match(
    shown.stdout,
    /^auditor: its card is signed by another key: \.\/sluice peers accept auditor$/m,
  );

  const blind = await run(["peers", "accept", "auditor"], { cwd });
  assert.deepEqual([blind.code, blind.stdout], [2, ""]);
  assert.match(blind.stderr, /must have seen it: without a terminal --key did:key:/);
  const any = await run(["peers", "accept", "auditor", "--unsigned"], { cwd });
  assert.deepEqual([any.code, any.stdout], [2, ""]);
  assert.match(any.stderr, /must have seen it: a terminal is required/);
  const both = await run(["peers", "accept", "auditor", "--unsigned", "--key", second.did], { cwd });
  assert.deepEqual([both.code, both.stdout], [2, ""]);
  assert.match(both.stderr, /'--unsigned' cannot be used with option '--key <did>'/);
  const other = await run(["peers", "accept", "auditor", "--key", first.did], { cwd });
  assert.match(other.stderr, /--key: auditor offers another key/);
  const accepted = await run(["peers", "accept", "auditor", "--key", second.did], { cwd });
  assert.deepEqual(accepted.code, 0, accepted.stderr);
  const taken = await run(["peers", "refresh", "auditor", "--json"], { cwd });
  assert.deepEqual(taken.json(), [
    { remote: "auditor", outcome: "updated", added: [], removed: ["sbom"], warning: null, offered: null },
  ]);
  const [now] = await peers("auditor");
  assert.deepEqual(now?.signature, { state: "valid", key: second.did, offered: null });
});

test("a person is asked on a terminal before any key is taken", { skip }, async () => {
  for (const answer of ["no", "yes"]) {
    const asked = onTerminal("peers accept auditor --unsigned", cwd);
    await until("it asks", () => asked.shown().includes("(yes or no)"), { seen: asked.shown });
    asked.type(`${answer}\n`);
    assert.equal(await asked.exitCode(), answer === "yes" ? 0 : 1);
    const [now] = await peers("auditor");
    assert.equal(now?.signature?.state, answer === "yes" ? "unverified" : "valid");
  }
});

test("names that nobody has are told with the nearest", async () => {
  const refresh = await run(["peers", "refresh", "audtor"], { cwd });
  assert.deepEqual([refresh.code, refresh.stdout], [2, ""]);
  assert.match(refresh.stderr, /no remote agent "audtor"; did you mean auditor\?/);
  const strange = await run(["peers", "refresh", "\u001b[2J../x"], { cwd });
  assert.deepEqual([strange.code, strange.stdout], [2, ""]);
  assert.match(strange.stderr, /no remote agent "\\u001b\[2J\.\.\/x"; there are auditor, elder/);
  const accept = await run(["peers", "accept", "eldr"], { cwd });
  assert.match(accept.stderr, /no remote agent "eldr"; did you mean elder\?/);
});

test("an agent that is gone keeps its card, and the command says that it does not answer", async () => {
  await elder.close();
  assert.ok((await sluice.host.invoke("cards", {})).ok);
  const failed = await run(["peers", "refresh", "elder"], { cwd });
  assert.match(
    failed.stdout,
    /^remote agent elder: .* its card of .* is kept: .*agent-card\.json: .*agent\.json: /,
  );
  const { stdout } = await run(["peers"], { cwd });
  assert.match(stdout, /^REMOTE +NAME +STATE +HEALTH +CIRCUIT /m);
  assert.match(stdout, /^elder +Elder +live, failing since .* does not answer +closed/m);
  assert.ok(logged().some((line) => line.includes("a remote agent does not answer")));
});
