import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestCredentialError } from "../../../shared/http/index.ts";
import { RemoteCredentialsError } from "../../../shared/remotes/credentials.ts";
import { troubleOf } from "../../../shared/remotes/front/trouble.ts";

/** As it is without AWS's own credentials, which may be there again in a moment: its name alone is like ours. */
const aws = Object.assign(new Error("no credentials"), { name: "CredentialsProviderError" });

test("only missing credentials of the remote agent are for an operator; whatever else keeps us from it is tried again", () => {
  const away = new RemoteCredentialsError("away", { passing: true });
  const codes = [new RemoteCredentialsError("none"), new RequestCredentialError("empty"), away, aws].map(
    (error) => {
      const { code, again } = troubleOf(error, { begun: false, now: 0 });
      return [code, again];
    },
  );
  assert.deepEqual(codes, [
    ["no_credentials", false],
    ["no_credentials", false],
    ["not_begun", true],
    ["not_begun", true],
  ]);
});

test("what fails within an exchange and is no failure of it is a mistake of ours, whatever its name", () => {
  for (const error of [new RemoteCredentialsError("none"), aws])
    assert.throws(() => troubleOf(error, { begun: true, now: 0 }), error);
});
