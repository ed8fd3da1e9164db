// The AWS durable execution SDK over its own local runner; run in the folder where both are installed.
import { withDurableExecution } from "@aws/durable-execution-sdk-js";
import { LocalDurableTestRunner } from "@aws/durable-execution-sdk-js-testing";

const { steps, parallel, stored } = JSON.parse(process.argv[2]);
const result = { step: [], parallel: null, replay: null, said: [] };

async function run(name, handler) {
  const runner = new LocalDurableTestRunner({ handlerFunction: withDurableExecution(handler) });
  try {
    const execution = await runner.run({ payload: {} });
    if (execution.getStatus() !== "SUCCEEDED") throw new Error(JSON.stringify(execution.getError()));
  } catch (error) {
    result.said.push(`${name}: ${String(error?.message ?? error).slice(0, 200)}`);
  }
}

await LocalDurableTestRunner.setupTestEnvironment({ skipTime: false });
await run("sequential", async (_event, context) => {
  for (let n = 0; n < steps; n++) {
    const before = performance.now();
    await context.step(`step ${n}`, async () => n);
    result.step.push(performance.now() - before);
  }
});
await run("parallel", async (_event, context) => {
  const before = performance.now();
  await Promise.all(Array.from({ length: parallel }, (_, n) => context.step(`part ${n}`, async () => n)));
  result.parallel = performance.now() - before;
});
let runs = 0;
await run("replay", async (_event, context) => {
  const before = performance.now();
  runs++;
  for (let n = 0; n < stored; n++) await context.step(`step ${n}`, async () => n);
  if (runs > 1) result.replay ??= performance.now() - before;
  await context.wait("pause", { seconds: 1 });
});
if (runs < 2) result.replay = null;
await LocalDurableTestRunner.teardownTestEnvironment();
process.stdout.write(`\n${JSON.stringify(result)}\n`, () => process.exit(0));
