import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ROOT } from "../../infra/bundle.ts";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { loadAgents } from "../../shared/config/load-agents.ts";

const folder = mkdtempSync(join(tmpdir(), "sluice-docs-"));
after(() => rmSync(folder, { recursive: true }));

const page = readFileSync(join(ROOT, "docs", "configuration.md"), "utf8");
const agents = await loadAgents(join(ROOT, "agents"));

test("the page's example is read without a complaint", () => {
  const example = /```yaml\n([\s\S]*?)```/.exec(page)?.[1];
  assert.ok(example);
  const path = join(folder, "agents.yaml");
  writeFileSync(path, example);
  const exec = readAgentsYaml(path, agents).deployment.agents.find(({ id }) => id === "exec");
  assert.equal(exec?.runtime, "acme-exec");
});

test("the repository's own agents.yaml lets nobody in but the local command and what it has asked", () => {
  const { deployment } = readAgentsYaml(join(ROOT, "agents.yaml"), agents);
  assert.equal(deployment.deployment, "local");
  for (const { id, policy } of deployment.agents)
    assert.deepEqual(
      policy.acceptFromRuntimes,
      id === "digest" || id === "echo" ? ["local-cli", "local-relay"] : ["local-cli"],
      id,
    );
});
