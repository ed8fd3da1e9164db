import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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

test("credentials that AWS does not take are told from other errors", () => {
  const named = (name: string) => awsAdvice(Object.assign(new Error("no"), { name }));
  for (const name of ["ExpiredToken", "InvalidClientTokenId", "SignatureDoesNotMatch"])
    assert.match(named(name) ?? "", /AWS_PROFILE/, name);
  assert.deepEqual(
    [named("TimeoutError"), named("AccessDenied"), awsAdvice("x")],
    [undefined, undefined, undefined],
  );
});
