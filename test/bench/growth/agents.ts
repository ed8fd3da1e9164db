import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { synthesize } from "../../../infra/synth.ts";
import { SENDER } from "../../support/sluice.ts";
import { Load } from "../load.ts";
import { say } from "../print.ts";
import { type Grown, type GrowthRun, grown, mediansOf, OF_A_PRODUCT, roundOf } from "./measures.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
const COUNTED = join(ROOT, "test/fixtures/deployment/agents/parts/counted.ts");

/** Products that host so many agents, one after the other: an agent costs something whether it has tasks or not. */
export async function growthOfAgents({ sizes, rounds }: GrowthRun): Promise<Grown> {
  const bySize: number[][] = [];
  for (const size of sizes) {
    say(`a product that hosts ${size} agents …`);
    const load = await Load.start("agent-1", { assemblyDir: await assemblyOf(size) });
    try {
      const measured: number[][] = [];
      // The first round warms up.
      for (let round = 0; round <= rounds; round++) {
        const values = await roundOf(load);
        if (round > 0) measured.push(values);
      }
      bySize.push(mediansOf(measured));
    } finally {
      await load.sluice.stop();
    }
  }
  return grown("agents", sizes, OF_A_PRODUCT, bySize);
}

/** Writes a deployment of so many agents that all do the same, and synthesizes it. */
async function assemblyOf(count: number): Promise<string> {
  const folder = join(ROOT, ".cache/bench/deployments", String(count));
  const agentsDir = join(folder, "agents");
  const agentsYaml = join(folder, "agents.yaml");
  const outDir = join(folder, "assembly");
  rmSync(agentsDir, { recursive: true, force: true });
  mkdirSync(agentsDir, { recursive: true });
  const ids = Array.from({ length: count }, (_, n) => `agent-${n + 1}`);
  const counted = JSON.stringify(relative(agentsDir, COUNTED));
  for (const id of ids)
    writeFileSync(
      join(agentsDir, `${id}.ts`),
      `import { counted } from ${counted};\nexport default counted("${id}");\n`,
    );
  const defaults = `defaults:\n  acceptFromRuntimes: [${SENDER}]\n  maxConcurrent: 0\n`;
  const agents = ids.map((id) => `  ${id}: {}\n`).join("");
  writeFileSync(agentsYaml, `deployment: acme\n${defaults}agents:\n${agents}`);
  return (await synthesize({ agentsDir, agentsYaml, outDir })).assemblyDir;
}
