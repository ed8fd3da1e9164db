import assert from "node:assert/strict";
import { test } from "node:test";
import { readBundled } from "../../shared/config/bundled.ts";
import { parseDeployment } from "../../shared/config/deployment.ts";
import { natsAccess, readEnv, workQueues } from "../../shared/config/env.ts";

test("a function reads the variables that it needs and no other", () => {
  const env = { TABLE_NAME: "tasks", TASKS_QUEUE_URL: "http://127.0.0.1:9/0/tasks", BUCKET_NAME: "" };
  assert.deepEqual(readEnv(["TABLE_NAME", "TASKS_QUEUE_URL"], env), {
    TABLE_NAME: "tasks",
    TASKS_QUEUE_URL: "http://127.0.0.1:9/0/tasks",
  });
});

test("hints go to a shared queue, or to those of single agents, or both", () => {
  const shared = "http://127.0.0.1:9/0/work";
  const own = `{"acme-support":"${shared}-support"}`;
  assert.deepEqual(workQueues({ WORK_QUEUE_URL: shared }), { shared, own: new Map() });
  assert.deepEqual(workQueues({ WORK_QUEUE_URLS: own }), {
    own: new Map([["acme-support", `${shared}-support`]]),
  });
  assert.equal(workQueues({ WORK_QUEUE_URL: shared, WORK_QUEUE_URLS: own }).own.size, 1);
});

test("queues that are missing or malformed are named", () => {
  assert.throws(() => workQueues({}), /WORK_QUEUE_URL: expected a URL, got nothing$/);
  assert.throws(() => workQueues({ WORK_QUEUE_URL: "work" }), /WORK_QUEUE_URL: expected a URL, got work$/);
  for (const text of ["{", "[]", "null", '"a"'])
    assert.throws(() => workQueues({ WORK_QUEUE_URLS: text }), /WORK_QUEUE_URLS: expected JSON, an object/);
  assert.throws(
    () => workQueues({ WORK_QUEUE_URLS: '{"a":"b"}' }),
    /WORK_QUEUE_URLS\.a: expected a URL, got "b"$/,
  );
});

test("each missing or malformed variable is named", () => {
  assert.throws(
    () =>
      readEnv(["TABLE_NAME", "TASKS_QUEUE_URL", "BUCKET_NAME"], {
        TASKS_QUEUE_URL: "tasks",
        BUCKET_NAME: "b",
      }),
    /TABLE_NAME: expected a name, got nothing; TASKS_QUEUE_URL: expected a URL, got tasks$/,
  );
});

const deployment = parseDeployment({
  deployment: "acme",
  nats: {
    servers: ["tls://nats.example:4222"],
    credentials: "secret:nats",
    ca: "-----BEGIN CERTIFICATE-----",
  },
  agents: [],
});

test("NATS is where the deployment says", () => {
  assert.deepEqual(natsAccess(deployment, {})(), {
    servers: ["tls://nats.example:4222"],
    credentials: "secret:nats",
    ca: "-----BEGIN CERTIFICATE-----",
  });
});

test("the environment overrides where NATS is and who we are", () => {
  const access = natsAccess(deployment, {
    NATS_SERVERS: "nats://a:4222, nats://b:4222",
    NATS_CREDENTIALS: "none",
  })();
  assert.deepEqual(access.servers, ["nats://a:4222", "nats://b:4222"]);
  assert.equal(access.credentials, "none");
});

test("an override that is not as expected is named", () => {
  assert.throws(() => natsAccess(deployment, { NATS_SERVERS: "a:4222" })(), /expected a URL nats:/);
  assert.throws(
    () => natsAccess(deployment, { NATS_SERVERS: "nats://alice:hunter2@a:4222" })(),
    (error: Error) => /without user and password/.test(error.message) && !error.message.includes("hunter2"),
  );
  assert.throws(() => natsAccess(deployment, { NATS_CREDENTIALS: "hunter2" })(), /expected none, file:PATH/);
});

/** What is thrown. */
function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return assert.fail("nothing was thrown");
}

test("what is not as expected is found once, and told the same each time", () => {
  const { nats } = deployment;
  const access = natsAccess(deployment, { NATS_SERVERS: "a:4222" });
  assert.equal(thrownBy(access), thrownBy(access));
  const bundled = readBundled({ deployment: 1, nats, agents: [{}], discovery: 1, outbound: 1 });
  assert.equal(
    thrownBy(() => bundled.deployment),
    thrownBy(() => bundled.nats),
  );
  assert.equal(
    thrownBy(() => bundled.agents),
    thrownBy(() => bundled.agents),
  );
  assert.equal(
    thrownBy(() => bundled.discovery),
    thrownBy(() => bundled.outbound),
  );
});

test("what a bundle carries is parsed again, and what is wrong with it named", () => {
  const { nats } = deployment;
  // Each part is read when it is first asked for.
  const bundled = readBundled({ deployment: "acme", nats, agents: [{}], discovery: 1 });
  assert.equal(bundled.deployment, "acme");
  assert.throws(() => bundled.agents, /agents\[0\]\.runtime/);
  assert.throws(() => bundled.discovery, /expected object.*at discovery/s);
  assert.throws(() => readBundled({ deployment: "acme", nats, agents: [], agent: [] }), /"agent"/);
  const astray = readBundled({ deployment: "acme", nats: { ...nats, servers: ["a:4222"] }, agents: [] });
  assert.throws(() => astray.nats, /expected a URL nats:.*at nats\.servers\[0\]/s);
  assert.throws(() => readBundled({}).deployment, /at deployment/);
});
