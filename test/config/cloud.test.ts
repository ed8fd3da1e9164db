import assert from "node:assert/strict";
import { test } from "node:test";
import { stringify } from "yaml";
import * as z from "zod";
import { defineAgent, skill } from "../../shared/agents/index.ts";
import { type OperatorConfig, readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { MAX_OWN_FUNCTIONS } from "../../shared/config/cloud.ts";
import { ConfigError } from "../../shared/config/config-error.ts";

const task = skill({ name: "Task", description: "Does it", input: z.string(), run: () => "done" });
const agentNamed = (id: string) => defineAgent({ id, description: "An agent", skills: { task } });
const agents = ["support", "dead", "un-dead"].map(agentNamed);

function read(file: Readonly<Record<string, unknown>>): OperatorConfig {
  return readAgentsYaml("agents.yaml", agents, () => stringify({ deployment: "acme", ...file }));
}

/** What is said of a file, without its name and the line. */
function complaint(file: Readonly<Record<string, unknown>>): string {
  try {
    read(file);
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.message.replaceAll(/^agents\.yaml:\d+: /gm, "");
  }
  return assert.fail("expected an error");
}

const cloud = (of: unknown) => read({ cloud: of }).cloud;
const cloudComplaint = (of: unknown) => complaint({ cloud: of });
const own = (of: unknown) => read({ agents: { support: { function: of } } }).functions.get("support");
const ownComplaint = (of: unknown) => complaint({ agents: { support: { function: of } } });

test("every field of cloud has a default", () => {
  const defaults = {
    stage: "main",
    keepData: true,
    bridge: "lambda",
    logRetentionDays: 30,
    alarms: { emails: [] },
  };
  assert.deepEqual(cloud(undefined), defaults);
  assert.deepEqual(cloud({ network: null, alarms: null }), defaults);
});

test("a stage has a name that can be part of a stack's", () => {
  for (const stage of ["d", "dev", "a-2", "s".repeat(16)]) assert.equal(cloud({ stage }).stage, stage);
  for (const stage of ["", "Dev", "2a", "a_b", "s".repeat(17)])
    assert.match(
      cloudComplaint({ stage }),
      new RegExp(`^cloud.stage: expected 1 to 16 of a-z.*, got a text of ${stage.length} characters$`),
    );
});

test("an error names line and field, and what is no field is refused", () => {
  const text = "deployment: acme\ncloud:\n  bridge: ecs\n  vpc: new\n";
  assert.throws(
    () => readAgentsYaml("agents.yaml", agents, () => text),
    (error: Error) => {
      assert.equal(
        error.message,
        'agents.yaml:3: cloud.bridge: expected "lambda" or "fargate", got a text of 3 characters\n' +
          "agents.yaml:4: cloud.vpc: unknown field; expected one of stage, keepData, bridge, network, logRetentionDays, alarms",
      );
      return true;
    },
  );
});

test("logs are kept for a time that CloudWatch offers", () => {
  assert.equal(cloud({ logRetentionDays: 3653 }).logRetentionDays, 3653);
  assert.match(
    cloudComplaint({ logRetentionDays: 31 }),
    /^cloud.logRetentionDays: expected 1 or 3 or .*, got 31$/,
  );
});

const EXISTING = {
  vpcId: "vpc-0123456789abcdef0",
  subnetIds: ["subnet-01234567", "subnet-0123456789abcdef0"],
  availabilityZones: ["eu-central-1a", "eu-central-1b"],
};

test("an existing network is told, for nothing is looked up", () => {
  assert.deepEqual(cloud({ network: EXISTING }).network, {
    ...EXISTING,
    securityGroupIds: [],
    endpoints: false,
  });
  const { subnetIds: _, ...without } = EXISTING;
  assert.match(
    cloudComplaint({ network: without }),
    /network.subnetIds: expected the private subnets of vpc-/,
  );
  assert.match(
    cloudComplaint({ network: { ...EXISTING, availabilityZones: ["eu-central-1a"] } }),
    /network.availabilityZones: expected one for each of the subnetIds \(2\), got a list of 1$/,
  );
  assert.match(
    cloudComplaint({ network: { ...EXISTING, endpoints: true } }),
    /network.routeTableIds: expected one for each of the subnetIds \(2\), got nothing$/,
  );
  const routeTableIds = ["rtb-01234567", "rtb-01234567"];
  assert.equal(cloud({ network: { ...EXISTING, endpoints: true, routeTableIds } }).network?.endpoints, true);
});

test("a network of the stack's own has nothing that exists", () => {
  assert.equal(cloud({ network: { vpcId: "new" } }).network?.vpcId, "new");
  assert.match(
    cloudComplaint({ network: { ...EXISTING, vpcId: "new" } }),
    /^cloud.network.subnetIds: expected nothing beside vpcId: new.*\ncloud.network.availabilityZones: expected nothing/,
  );
});

test("ids are those of EC2", () => {
  for (const vpcId of ["vpc-", "vpc-0123456", "vpc-0123456789abcdefg", "subnet-01234567", "New"])
    assert.match(cloudComplaint({ network: { vpcId } }), /^cloud.network.vpcId: expected an id vpc-… or new/);
  assert.match(
    cloudComplaint({ network: { vpcId: "new", securityGroupIds: ["sg-1"] } }),
    /^cloud.network.securityGroupIds\[0\]: expected an id sg-…/,
  );
  const groups = (count: number) => ({ vpcId: "new", securityGroupIds: Array(count).fill("sg-01234567") });
  assert.equal(cloud({ network: groups(4) }).network?.securityGroupIds.length, 4);
  assert.match(cloudComplaint({ network: groups(5) }), /securityGroupIds: expected at most 4 entries/);
});

test("a bridge in a container needs a network", () => {
  assert.match(cloudComplaint({ bridge: "fargate" }), /^cloud.network: expected a network .*, got nothing$/);
  assert.equal(cloud({ bridge: "fargate", network: { vpcId: "new" } }).bridge, "fargate");
});

test("alarms go to addresses or to a topic", () => {
  const topicArn = "arn:aws:sns:eu-central-1:123456789012:on-call";
  assert.deepEqual(cloud({ alarms: { topicArn } }).alarms, { emails: [], topicArn });
  assert.deepEqual(cloud({ alarms: { emails: ["ops@example.com"] } }).alarms, {
    emails: ["ops@example.com"],
  });
  assert.match(
    cloudComplaint({ alarms: { emails: ["ops@example.com"], topicArn } }),
    /^cloud.alarms: expected either emails or topicArn, got a map$/,
  );
  assert.equal(
    cloudComplaint({ alarms: { emails: ["ops@example.com", "ops@example.com"] } }),
    "cloud.alarms.emails: expected each address once, got a list of 2",
  );
  assert.match(cloudComplaint({ alarms: { emails: ["ops"] } }), /emails\[0\]: expected an e-mail address/);
  assert.match(
    cloudComplaint({ alarms: { topicArn: "on-call" } }),
    /topicArn: expected the ARN of an SNS topic/,
  );
});

test("an agent has a work function of its own when it asks for one", () => {
  assert.equal(read({}).functions.size, 0);
  assert.deepEqual(own({}), {
    memoryMb: 1024,
    timeoutSec: 900,
    batchSize: 1,
    maxConcurrency: 50,
    secrets: [],
    permissions: [],
  });
  // It belongs to the stack: the functions are not told.
  const { deployment } = read({ agents: { support: { function: {} } } });
  assert.equal(JSON.stringify(deployment).includes("memoryMb"), false);
});

const BOUNDS: readonly [field: string, least: number, most: number][] = [
  ["memoryMb", 128, 10_240],
  ["timeoutSec", 30, 900],
  ["batchSize", 1, 10],
  ["maxConcurrency", 2, 1_000],
];
for (const [field, least, most] of BOUNDS)
  test(`bounds of a function's ${field}`, () => {
    for (const value of [least, most]) assert.ok(own({ [field]: value }));
    const path = `agents.support.function.${field}`;
    assert.equal(
      ownComplaint({ [field]: least - 1 }),
      `${path}: expected at least ${least}, got ${least - 1}`,
    );
    assert.equal(ownComplaint({ [field]: most + 1 }), `${path}: expected at most ${most}, got ${most + 1}`);
  });

test("further permissions name actions and resources", () => {
  const permissions = [{ actions: ["s3:GetObject"], resources: ["arn:aws:s3:::manuals/*"] }];
  assert.deepEqual(own({ permissions, secrets: ["acme/model-key"] })?.permissions, permissions);
  const wrong = (of: object) => ownComplaint({ permissions: [{ ...permissions[0], ...of }] });
  assert.match(
    wrong({ actions: ["s3:*"] }),
    /permissions\[0\].actions\[0\]: expected an action .*without \*/,
  );
  assert.match(wrong({ actions: [] }), /permissions\[0\].actions: expected at least 1 entries/);
  assert.match(wrong({ resources: ["manuals"] }), /permissions\[0\].resources\[0\]: expected an ARN, or \*/);
  assert.match(ownComplaint({ secrets: ["a b"] }), /secrets\[0\]: expected the name or the ARN of a secret/);
});

test("a secret is named, or its whole ARN is given", () => {
  const arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:rds!model/key-AbCdEf";
  assert.deepEqual(own({ secrets: [arn] })?.secrets, [arn]);
  // Neither would grant anything.
  for (const other of [arn.slice(0, -"-AbCdEf".length), "arn:aws:s3:::manuals"])
    assert.match(
      ownComplaint({ secrets: [other] }),
      /secrets\[0\]: expected the name or the ARN of a secret/,
    );
});

test("bound of functions of their own", () => {
  const many = Array.from({ length: MAX_OWN_FUNCTIONS + 1 }, (_, i) => agentNamed(`agent${i}`));
  const text = stringify({
    deployment: "acme",
    agents: Object.fromEntries(many.map(({ id }) => [id, { function: {} }])),
  });
  assert.throws(
    () => readAgentsYaml("agents.yaml", many, () => text),
    /^ConfigError: agents.yaml:2: agents: expected at most 12 agents with a function of their own, got 13$/,
  );
  const fewer = text.replace(/ {2}agent12:\n.*\n/, "");
  assert.equal(readAgentsYaml("agents.yaml", many, () => fewer).functions.size, MAX_OWN_FUNCTIONS);
});

test("no queue of an agent's own is called like a dead-letter queue", () => {
  const complaintOf = (id: string) => complaint({ agents: { [id]: { function: {} } } });
  assert.match(
    complaintOf("dead"),
    /^agents.dead.function: expected an agent whose queue .*, got work-dead$/,
  );
  assert.match(complaintOf("un-dead"), /got work-un-dead$/);
});
