import type { Step } from "../../../shared/agents/index.ts";
import type { Measured, Work } from "../engines.ts";
import { Ground } from "../ground.ts";

const HOUR_MS = 3_600_000;

/** The handlers that other engines run, on ours. */
export async function oursOf({ steps, parallel, stored }: Work): Promise<Measured> {
  const ground = await Ground.start();
  try {
    const taken: number[] = [];
    await ground.work(await ground.admit(), async (step) => {
      for (let n = 0; n < steps; n++) {
        const before = performance.now();
        await step.run(`step ${n}`, async () => n);
        taken.push(performance.now() - before);
      }
    });
    let atOnce = 0;
    await ground.work(await ground.admit(), async (step) => {
      const before = performance.now();
      await Promise.all(Array.from({ length: parallel }, (_, n) => step.run(`part ${n}`, async () => n)));
      atOnce = performance.now() - before;
    });
    return { step: taken, parallel: atOnce, replay: await replayOf(ground, stored), said: [] };
  } finally {
    await ground.stop();
  }
}

async function replayOf(ground: Ground, stored: number): Promise<number> {
  const taskId = await ground.admit();
  let took = 0;
  const handle = async (step: Step) => {
    const before = performance.now();
    for (let n = 0; n < stored; n++) await step.run(`step ${n}`, async () => n);
    took = performance.now() - before;
    await step.sleep("pause", "1h");
  };
  await ground.work(taskId, handle);
  ground.world.skip(HOUR_MS);
  await ground.work(taskId, handle);
  return took;
}
