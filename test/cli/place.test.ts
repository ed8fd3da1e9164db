import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { awsAdvice, findPlace } from "../../cli/place.ts";
import { run } from "./run.ts";

/** No region and no credentials are to be found: neither in variables nor files, nor at the machine's metadata service. */
const NOTHING = {
  AWS_CONFIG_FILE: "/nonexistent",
  AWS_SHARED_CREDENTIALS_FILE: "/nonexistent",
  AWS_EC2_METADATA_DISABLED: "true",
};

test("a stack that cannot be asked for want of a region or of credentials: it is said what to set", async () => {
  for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) delete process.env[name];
  Object.assign(process.env, NOTHING);
  await assert.rejects(findPlace({}, "sluice-x"), {
    exitCode: 3,
    message: /^cannot read the stack sluice-x: Region is missing; set AWS_REGION .*AWS_PROFILE/,
  });
  process.env.AWS_REGION = "eu-west-1";
  await assert.rejects(findPlace({}, "sluice-x"), {
    exitCode: 3,
    message: /^cannot read the stack sluice-x: Could not load cred.*AWS_PROFILE.*aws sts get-caller-identity/,
  });
});

test("of a stack that cannot be read doctor does not look at another's NATS", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "sluice-place-"));
  writeFileSync(join(cwd, "agents.yaml"), "nats: { servers: ['nats://127.0.0.1:1'] }\n");
  const { code, stdout } = await run(["doctor", "--stack", "sluice-x"], { cwd, env: NOTHING });
  rmSync(cwd, { recursive: true });
  assert.equal(code, 1);
  assert.match(stdout, /^wrong +stack: cannot read the stack sluice-x: /m);
  assert.match(stdout, /^warning +NATS: not looked at: the stack's outputs tell where it is, and /m);
  assert.doesNotMatch(stdout, /127\.0\.0\.1|npm start|durable/);
});

test("where a host was started and does not run doctor does not look at who is at the usual port", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "sluice-place-"));
  mkdirSync(join(cwd, ".sluice"));
  writeFileSync(join(cwd, ".sluice/start.json"), '{"arguments":["--verbose"]}');
  const { code, stdout } = await run(["doctor"], { cwd });
  rmSync(cwd, { recursive: true });
  assert.equal(code, 1);
  assert.match(
    stdout,
    /^wrong +stack: no local host runs in this folder: .*`cd .* && npm start -- --verbose`/m,
  );
  assert.match(stdout, /^warning +NATS: not looked at: no local host runs in this folder, and at nats:/m);
  assert.doesNotMatch(stdout, /reached|durable/);
});

test("an agents.yaml that is broken beside a running host is a finding of doctor's, with file and line", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "sluice-place-"));
  for (const name of [".sluice", "agents"]) mkdirSync(join(cwd, name));
  writeFileSync(join(cwd, "agents.yaml"), "deployment: acme\n- a\n");
  const parts = { dynamodb: "http://127.0.0.1:1", s3: "http://127.0.0.1:1", table: "t", bucket: "b" };
  const host = { pid: process.pid, nats: "nats://127.0.0.1:1", ...parts };
  writeFileSync(join(cwd, ".sluice/host.json"), JSON.stringify(host));
  const { code, stdout, stderr } = await run(["doctor"], { cwd });
  rmSync(cwd, { recursive: true });
  assert.equal(code, 1, stderr);
  assert.match(stdout, new RegExp(`^wrong +agents: ${cwd}/agents\\.yaml:2: \\w`, "m"));
  assert.match(stdout, /^wrong +NATS: cannot reach NATS at nats:\/\/127\.0\.0\.1:1/m);
});

test("credentials that AWS does not take are told from other errors", () => {
  const named = (name: string) => awsAdvice(Object.assign(new Error("no"), { name }));
  for (const name of ["ExpiredToken", "InvalidClientTokenId", "SignatureDoesNotMatch"])
    assert.match(named(name) ?? "", /AWS_PROFILE/, name);
  assert.deepEqual(
    [named("TimeoutError"), named("AccessDenied"), awsAdvice("x")],
    [undefined, undefined, undefined],
  );
});
