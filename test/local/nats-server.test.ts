import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { fetchNatsServer } from "../../infra/local/nats-fetch.ts";
import { findNatsServer } from "../../infra/local/nats-server.ts";
import { temporaryFolder } from "./support/assembly.ts";

const run = promisify(execFile);

/** A program that says it is a nats-server of a version. */
function program(path: string, version: string): string {
  writeFileSync(path, `#!/bin/sh\necho "nats-server: v${version}"\n`);
  chmodSync(path, 0o755);
  return path;
}

/** Serves one archive, as a release has it, that holds such a program. */
async function releaseServer(t: test.TestContext, version: string) {
  const folder = temporaryFolder("release");
  mkdirSync(join(folder, "nats-server-v1"));
  program(join(folder, "nats-server-v1", "nats-server"), version);
  await run("tar", ["-czf", "archive.tar.gz", "nats-server-v1"], { cwd: folder });
  const archive = readFileSync(join(folder, "archive.tar.gz"));
  const server = createServer((request, response) => {
    if (request.url !== "/archive.tar.gz") response.writeHead(404).end();
    else response.writeHead(200, { "content-length": archive.length }).end(archive);
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return {
    url: `http://127.0.0.1:${address.port}/archive.tar.gz`,
    sha256: createHash("sha256").update(archive).digest("hex"),
  };
}

test("NATS_SERVER_BIN comes before PATH, PATH before the cache, and what is too old is passed over", async () => {
  const folders = ["named", "old", "path", "home"].map(temporaryFolder);
  const [named = "", old = "", path = "", home = ""] = folders.map((folder) => join(folder, "nats-server"));
  program(named, "2.10.0");
  program(old, "2.9.25");
  program(path, "2.11.4");
  const cache = join(home, ".cache", "sluice");
  mkdirSync(cache, { recursive: true });
  program(join(cache, "nats-server"), "2.10.1");
  const PATH = [folders[1], folders[2], "/usr/bin", "/bin"].join(":");
  const find = (env: NodeJS.ProcessEnv) =>
    findNatsServer(() => assert.fail("nothing was to be fetched"), env);

  assert.equal(await find({ NATS_SERVER_BIN: named, PATH, HOME: home }), named);
  assert.equal(await find({ PATH, HOME: home }), path);
  assert.equal(await find({ PATH: "/usr/bin:/bin", HOME: home }), join(cache, "nats-server"));
  assert.equal(
    await find({ PATH: "/usr/bin:/bin", HOME: "/nowhere", XDG_CACHE_HOME: join(home, ".cache") }),
    join(cache, "nats-server"),
  );
});

test("a NATS_SERVER_BIN that will not do is an error that says why", async () => {
  const folder = temporaryFolder("bin");
  const cases: [string, RegExp][] = [
    [
      program(join(folder, "old"), "2.9.25"),
      /expected a nats-server of version 2\.10 or later; it is version 2\.9\.25/,
    ],
    [join(folder, "missing"), /ENOENT/],
    [program(join(folder, "other"), "one"), /it says "nats-server: vone"/],
  ];
  for (const [NATS_SERVER_BIN, message] of cases)
    await assert.rejects(
      findNatsServer(() => {}, { NATS_SERVER_BIN }),
      { code: "nats_not_found", message },
    );
});

test("the official release is unpacked when its checksum is right, with progress shown", async (t) => {
  const path = join(temporaryFolder("cache"), "deep", "nats-server");
  const said: string[] = [];
  const release = await releaseServer(t, "2.10.29");
  await fetchNatsServer(path, {
    progress: (line) => said.push(line),
    isGood: existsSync,
    release,
    suites: [],
  });
  assert.match((await run(path)).stdout, /v2\.10\.29/);
  assert.deepEqual(readdirSync(join(path, "..")), ["nats-server"]);
  assert.match(said.join("\n"), /fetching nats-server: http:.*\n.*100 %/);
});

test("an archive with another checksum is not used, and the error says what to do", async (t) => {
  const path = join(temporaryFolder("cache"), "nats-server");
  const release = { ...(await releaseServer(t, "2.10.29")), sha256: "0".repeat(64) };
  const fetching = fetchNatsServer(path, { progress: () => {}, isGood: existsSync, release, suites: [] });
  await assert.rejects(fetching, {
    code: "nats_not_found",
    message:
      /official release: its SHA-256 is [0-9a-f]{64}, expected 0{64}.*\n.*NATS_SERVER_BIN.*--nats nats:/,
  });
  assert.equal(existsSync(path), false);
});

test("when nothing can be fetched, everything that was tried is named", async (t) => {
  const path = join(temporaryFolder("cache"), "nats-server");
  const { url, sha256 } = await releaseServer(t, "2.10.29");
  const fetching = fetchNatsServer(path, {
    progress: () => {},
    isGood: existsSync,
    release: { url: `${url}.gone`, sha256 },
    suites: ["no-such-suite"],
  });
  await assert.rejects(fetching, {
    message: /official release: the server answers 404\n.*Debian's package, no-such-suite: ./,
  });
});
