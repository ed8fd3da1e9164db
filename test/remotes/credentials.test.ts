import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { RemoteConfig } from "../../shared/config/remotes.ts";
import {
  credentialPlaces,
  credentialSources,
  RemoteCredentialsError,
  readRemoteCredentials,
} from "../../shared/remotes/credentials.ts";
import { startSecretsManager } from "../support/secrets-manager.ts";

const folder = mkdtempSync(join(tmpdir(), "sluice-credentials-"));
after(() => rmSync(folder, { recursive: true }));
const file = join(folder, "key");
writeFileSync(file, "of the file\n");
writeFileSync(join(folder, "empty"), "\n");

function remote(name: string, credentials?: string): RemoteConfig {
  const auth = credentials === undefined ? {} : { auth: { scheme: "bearer" as const, credentials } };
  const url = "https://a.example/a2a";
  return { name, url, headers: {}, streaming: false, external: false, skills: [], subscribesTo: [], ...auth };
}
const secrets: Readonly<Record<string, string>> = { one: "of the secret", "arn:aws:x": "y" };
const sources = {
  ...credentialSources({ KEY: " of the variable ", EMPTY: "" }),
  secret: async (name: string) => secrets[name] ?? Promise.reject(new Error(`secret ${name}: there is none`)),
};

test("credentials are read from secrets, files and variables", async () => {
  const remotes = [
    remote("a", "secret:one"),
    remote("b", `file:${file}`),
    remote("c", "env:KEY"),
    remote("d"),
    remote("e", "secret:arn:aws:x"),
    remote("f", "env:KEY"),
  ];
  assert.deepEqual(Object.fromEntries(await readRemoteCredentials(remotes, sources)), {
    a: "of the secret",
    b: "of the file",
    c: "of the variable",
    e: "y",
    f: "of the variable",
  });
  assert.deepEqual(credentialPlaces(remotes), {
    secrets: ["one", "arn:aws:x"],
    files: [file],
    variables: ["KEY"],
  });
});

test("what is missing or empty is an error that names each, and quotes none", async () => {
  const remotes = [
    remote("a", "secret:two"),
    remote("b", `file:${join(folder, "none")}`),
    remote("c", "env:UNSET"),
    remote("d", "env:EMPTY"),
    remote("e", `file:${join(folder, "empty")}`),
    remote("f", "secret:one"),
  ];
  await assert.rejects(readRemoteCredentials(remotes, sources), (error) => {
    assert.ok(error instanceof RemoteCredentialsError);
    for (const said of [
      "credentials of the remote agent a: secret:two cannot be read: secret two: there is none",
      `credentials of the remote agent b: file:${join(folder, "none")} cannot be read: ENOENT`,
      "credentials of the remote agent c: env:UNSET is not there",
      "credentials of the remote agent d: env:EMPTY is empty",
      `credentials of the remote agent e: file:${join(folder, "empty")} is empty`,
    ])
      assert.ok(error.message.includes(said), said);
    assert.doesNotMatch(error.message, /agent f|of the secret/);
    return true;
  });
});

test("a secret that cannot be asked for may be there the next time; one that is not, or not for us, is not", async (t) => {
  const manager = await startSecretsManager();
  t.after(() => manager.stop());
  const passing = async (...names: string[]) => {
    const remotes = names.map((name) => remote(name, `secret:${name}`));
    try {
      await readRemoteCredentials(remotes, credentialSources({}));
    } catch (error) {
      if (error instanceof RemoteCredentialsError) return error.passing;
    }
    return assert.fail("they are read");
  };
  manager.secrets.set("failing", { error: "InternalServiceError" });
  manager.secrets.set("throttled", { error: "ThrottlingException" });
  manager.secrets.set("denied", { error: "AccessDeniedException" });
  manager.secrets.set("empty", { text: " " });
  for (const name of ["none", "denied", "empty"]) assert.equal(await passing(name), false, name);
  for (const name of ["failing", "throttled"]) assert.equal(await passing(name), true, name);
  assert.equal(await passing("failing", "denied"), false);
  await manager.stop();
  assert.equal(await passing("away"), true);
});
