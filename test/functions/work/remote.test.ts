import assert from "node:assert/strict";
import { test } from "node:test";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { tellRemoteBy } from "../../../functions/work/remote.ts";
import * as fronts from "../../../shared/remotes/front/index.ts";
import type { Release } from "../../../shared/remotes/front/release.ts";
import { emptyView } from "../../../shared/tasks/fold.ts";
import type { Head } from "../../../shared/tasks/items.ts";
import type { LogFields } from "../../../shared/telemetry/fields.ts";
import { memoryValues } from "../../../shared/testing/memory-values.ts";
import { read } from "../../config/support/agents-yaml.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const head: Head = {
  taskId: "task_1",
  messageId: "msg_1",
  from: "adam",
  to: "acme-audit",
  digest: "d",
  state: "TASK_STATE_CANCELED",
  epoch: 1,
  beat: 0,
  published: 0,
  decidedAt: NOW,
  deadline: NOW + 300_000,
  expiresAt: NOW / 1_000 + 86_400,
};
const deployment = read(
  'deployment: acme\nremotes: [{ name: auditor, url: "https://auditor.example.com/a2a" }]\nagents: { audit: { remote: auditor } }',
);

for (const [release, settled, level] of [
  ["nothing", true, "info"],
  ["told", true, "info"],
  ["refused", true, "warn"],
  ["later", false, "warn"],
  ["gave_up", true, "warn"],
] as const satisfies readonly (readonly [Release, boolean, string])[])
  test(`a remote's end that comes to ${release} is told of by its name`, async () => {
    const lines: (LogFields & { level: string })[] = [];
    const client = new DynamoDBClient({ region: "eu-central-1" });
    const tell = tellRemoteBy(
      {
        deployment,
        values: memoryValues(),
        access: { client: DynamoDBDocumentClient.from(client), table: "tasks" },
        telemetry: {
          info: (_, fields) => void lines.push({ ...fields, level: "info" }),
          warn: (_, fields) => void lines.push({ ...fields, level: "warn" }),
          count() {},
        },
        timing: { scale: 1 },
        now: () => NOW,
      },
      async () => ({ ...fronts, releaseFor: async () => release }),
    );
    assert.equal(await tell(head, emptyView(), NOW), settled);
    assert.deepEqual(
      lines.map(({ level, taskId, to, remote, why }) => [level, taskId, to, remote, why]),
      [[level, "task_1", "acme-audit", "auditor", release]],
    );
    client.destroy();
  });
