import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { synthesize } from "../../../infra/synth.ts";
import { SENDER } from "../../support/sluice.ts";
import { Load } from "../load.ts";
import { say } from "../print.ts";
import { type Grown, type GrowthRun, grown, inTurns, OF_A_PRODUCT, roundOf } from "./measures.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
const COUNTED = join(ROOT, "test/fixtures/deployment/agents/parts/counted.ts");

/** Products that host so many agents, each with a limit, as `sweep` reads of such an agent how many of its tasks wait. */
export async function growthOfAgents({ sizes, rounds }: GrowthRun): Promise<Grown> {
  const loads: Load[] = [];
  try {
    for (const size of sizes) {
      say(`a product that hosts ${size} agents …`);
      const load = await Load.start("agent-1", { assemblyDir: await assemblyOf(size) });
      loads.push(load);
      // Only of agents that have had a task there is anything to read.
      for (const id of idsOf(size)) await load.run(1, 1, { executor: `acme-${id}` });
    }
    return grown("agents", sizes, OF_A_PRODUCT, await inTurns(loads, rounds, roundOf));
  } finally {
    await Promise.all(loads.map(({ sluice }) => sluice.stop()));
  }
}

const idsOf = (count: number) => Array.from({ length: count }, (_, n) => `agent-${n + 1}`);

/** Writes a deployment of so many agents that all do the same, and synthesizes it. */
async function assemblyOf(count: number): Promise<string> {
  const folder = join(ROOT, ".cache/bench/deployments", String(count));
  const agentsDir = join(folder, "agents");
  const agentsYaml = join(folder, "agents.yaml");
  const outDir = join(folder, "assembly");
  rmSync(agentsDir, { recursive: true, force: true });
  mkdirSync(agentsDir, { recursive: true });
  const ids = idsOf(count);
  const counted = JSON.stringify(relative(agentsDir, COUNTED));
  for (const id of ids)
    writeFileSync(
      join(agentsDir, `${id}.ts`),
      `import { counted } from ${counted};\nexport default counted("${id}");\n`,
    );
  const defaults = `defaults:\n  acceptFromRuntimes: [${SENDER}]\n  maxConcurrent: 10\n`;
  const agents = ids.map((id) => `  ${id}: {}\n`).join("");
  writeFileSync(agentsYaml, `deployment: acme\n${defaults}agents:\n${agents}`);
  return (await synthesize({ agentsDir, agentsYaml, outDir })).assemblyDir;
}
