import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parse } from "yaml";
import { ROOT } from "../../infra/bundle.ts";
import { CONSUMPTION, FUNCTION_SIZES } from "../../infra/sizes.ts";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { agentFunction, cloudConfig } from "../../shared/config/cloud.ts";
import { agentPolicy } from "../../shared/config/deployment.ts";
import { loadAgents } from "../../shared/config/load-agents.ts";

const folder = mkdtempSync(join(tmpdir(), "sluice-docs-"));
after(() => rmSync(folder, { recursive: true }));

const page = readFileSync(join(ROOT, "docs", "configuration.md"), "utf8");
const agents = await loadAgents(join(ROOT, "agents"));

/** The cells of each row of the page's tables, without backticks. */
const rows = page
  .split("\n")
  .filter((line) => line.startsWith("| "))
  .map((line) => line.split("|").map((cell) => cell.trim().replaceAll("`", "")));

test("the page's example is read without a complaint", () => {
  const example = /```yaml\n([\s\S]*?)```/.exec(page)?.[1];
  assert.ok(example);
  const path = join(folder, "agents.yaml");
  writeFileSync(path, example);
  const exec = readAgentsYaml(path, agents).deployment.agents.find(({ id }) => id === "exec");
  assert.equal(exec?.runtime, "acme-exec");
});

test("each field of a policy is explained with its default", () => {
  const defaults: Readonly<Record<string, unknown>> = agentPolicy.parse({});
  for (const [field, value] of Object.entries(defaults)) {
    const row = rows.find(([, name]) => name === field);
    assert.ok(row, field);
    assert.deepEqual(parse(row[2] ?? ""), value, field);
  }
});

test("each field of the cloud and of a function of an agent's own is explained with its default", () => {
  const written = {
    ...cloudConfig.shape,
    ...cloudConfig.shape.network.unwrap().shape,
    ...agentFunction.shape,
  };
  const defaults: Readonly<Record<string, unknown>> = {
    ...cloudConfig.parse({}),
    ...agentFunction.parse({}),
  };
  for (const field of Object.keys(written)) {
    const told = rows.filter(([, name]) => name === field).map((row) => row[2] ?? "");
    const value = defaults[field];
    const plain = value !== undefined && typeof value !== "object";
    assert.ok(
      told.some((text) => (plain ? parse(text) === value : /^(none|required|\[\]|false)$/.test(text))),
      `${field}: ${told}`,
    );
  }
});

test("whatever the page's tables of fields name is a field", () => {
  const known = new Set([
    ...["deployment", "nats", "defaults", "agents", "cloud", "discovery", "remotes"],
    ...Object.keys(agentPolicy.parse({})),
    ...Object.keys(cloudConfig.shape),
    ...Object.keys(cloudConfig.shape.network.unwrap().shape),
    ...Object.keys(agentFunction.shape),
  ]);
  const told = Array.from(
    page.matchAll(/^\| (?:field|section)[^\n]*\n\| ---[^\n]*\n((?:\| [^\n]*\n)+)/gm),
    ([, table = ""]) => Array.from(table.matchAll(/^\| `([^`]+)`/gm), ([, name]) => name ?? ""),
  );
  assert.ok(told.length >= 5);
  for (const name of told.flat()) assert.ok(known.has(name), name);
});

test("the functions are as the page says", () => {
  const maps = Object.values(CONSUMPTION);
  for (const [name, { memoryMb, timeoutSec }] of Object.entries(FUNCTION_SIZES)) {
    const row = rows.find((cells) => cells[1] === name && cells[2]?.endsWith("MB"));
    assert.deepEqual(row?.slice(2, 4), [`${memoryMb} MB`, `${timeoutSec} s`], name);
    const most = maps.find(({ consumer }) => consumer === name)?.maxConcurrency;
    if (most !== undefined) assert.match(row?.[4] ?? "", new RegExp(`at most ${most} invocations$`));
  }
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
