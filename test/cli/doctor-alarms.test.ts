import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { checkAlarms } from "../../cli/doctor/alarms.ts";

test("doctor warns of each alarm of the local host that is in ALARM, and names its runbook", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-alarms-"));
  t.after(() => rmSync(dataDir, { recursive: true }));
  const parts = { dynamodb: "http://127.0.0.1:1", s3: "http://127.0.0.1:1", table: "t", bucket: "b" };
  const look = (text?: string, timeScale = 1) => {
    if (text !== undefined) writeFileSync(join(dataDir, "alarms.json"), text);
    return checkAlarms({ local: { ...parts, pid: 1, outputs: {}, dataDir, timeScale } });
  };
  const alarm = (id: string, state: string) => ({
    name: `sluice-local-${id}`,
    description: `Something is \u001b[2Jamiss. Runbook: docs/runbooks/${id}.md`,
    state,
    since: "2026-08-01T12:00:00.000Z",
  });
  const of = (...alarms: object[]) => JSON.stringify({ alarms });

  assert.deepEqual(await look(), [], "a host that keeps none");
  assert.deepEqual(await checkAlarms({}), [], "a stack in AWS");
  const calm = [alarm("no-results", "OK"), alarm("queue-age", "INSUFFICIENT_DATA")];
  assert.deepEqual(await look(of(...calm)), [{ level: "ok", part: "alarms", says: "none of 2 is in ALARM" }]);

  const text = of(...calm, alarm("dead-letters", "ALARM"));
  const [found, ...others] = await look(text);
  assert.deepEqual(others, []);
  assert.deepEqual(
    [found?.level, found?.part, found?.todo],
    ["warning", "alarm sluice-local-dead-letters", "see docs/runbooks/dead-letters.md"],
  );
  assert.match(found?.says ?? "", /^in ALARM since 2026-08-0\d \d\d:\d\d:\d\d: Something is amiss\.$/);
  assert.match((await look(text, 60))[0]?.says ?? "", /^in ALARM: Something/);

  const [broken] = await look("{");
  assert.deepEqual([broken?.level, broken?.part], ["wrong", "alarms"]);
});
