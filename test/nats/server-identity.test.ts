import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerCertificate } from "node:tls";
import { serverIdentity } from "../../shared/nats/server-identity.ts";

/** Whether a server with a certificate for these names is taken, reached under a name; `localhost` where there is none. */
function taken(servers: readonly string[], subjectaltname: string, name = "localhost"): boolean | "as usual" {
  const { checkServerIdentity } = serverIdentity(servers);
  // Node.js reads no more of a certificate than this.
  const certificate: PeerCertificate = Object.assign(Object.create(null), {
    subject: { CN: "nats" },
    subjectaltname,
  });
  return checkServerIdentity === undefined
    ? "as usual"
    : checkServerIdentity(name, certificate) === undefined;
}

test("a server that is named by its address is asked for that address", () => {
  const servers = ["tls://10.0.0.1:4222", "tls://[::1]:4222"];
  assert.equal(taken(servers, "IP Address:10.0.0.1"), true);
  assert.equal(taken(servers, "IP Address:0:0:0:0:0:0:0:1"), true);
  assert.equal(taken(servers, "IP Address:10.0.0.2"), false);
  assert.equal(taken(servers, "DNS:localhost"), false);
  assert.equal(taken([...servers, "tls://localhost:4222"], "DNS:localhost"), true);
});

test("a server with a name is asked for its name", () => {
  assert.equal(taken(["tls://nats.example.com"], "DNS:nats.example.com", "nats.example.com"), "as usual");
  const both = ["tls://10.0.0.1", "tls://nats.example.com"];
  assert.equal(taken(both, "DNS:nats.example.com", "nats.example.com"), true);
  assert.equal(taken(both, "IP Address:10.0.0.1", "nats.example.com"), false);
});
