import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { TimedOut } from "../../cli/errors.ts";
import { whyGoOn, whyNoFirstTask } from "../../infra/local/first-task.ts";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { temporaryFolder } from "./support/assembly.ts";

test("a remote agent is sent no first task, whoever it is open to", () => {
  const file = join(temporaryFolder("first"), "agents.yaml");
  writeFileSync(
    file,
    `deployment: acme
defaults: { acceptFromRuntimes: [acme-cli] }
agents: { digest: { remote: theirs } }
remotes: [{ name: theirs, url: "https://theirs.example/a2a" }]
`,
  );
  const { deployment } = readAgentsYaml(file, []);
  assert.deepEqual(
    deployment.agents.map(({ id, skills }) => [id, skills[0]?.slug]),
    [["digest", "task"]],
  );
  assert.equal(whyNoFirstTask(deployment), "no agent of its own is hosted that has the skill task");
});

test("a first task that takes its time does not end the host; what is wrong does", () => {
  assert.match(
    whyGoOn(new TimedOut("task_1", 120_000)) ?? "",
    /^The first task has timed out: task_1 did not end/,
  );
  assert.equal(whyGoOn(new Error("the stream is gone")), undefined);
});
