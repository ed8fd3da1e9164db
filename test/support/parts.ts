import { FileTrouble } from "../../infra/local/file-trouble.ts";
import { type Parts, startParts } from "../../infra/local/parts.ts";
import { Processes } from "../../infra/local/processes.ts";
import { testAssembly } from "./sluice.ts";

export interface RunningParts extends AsyncDisposable {
  readonly parts: Parts;
}

/**
 * The parts of a local host without its functions: the table, the queues and the bucket of the test deployment's stack.
 * Nobody works on what is in them.
 *
 * @param dataDir a folder that is there
 * @param servers of NATS
 */
export async function startTestParts(dataDir: string, servers: readonly string[]): Promise<RunningParts> {
  const closing = new AsyncDisposableStack();
  const assemblyDir = await testAssembly();
  const processes = new Processes(dataDir);
  closing.defer(async () => void (await processes.endAll()));
  const parts = await startParts(
    {
      options: { dataDir, assemblyDir, nats: { servers } },
      dataDir,
      scale: 1,
      processes,
      closing,
      progress: () => {},
      onTrouble: () => {},
      files: new FileTrouble(dataDir, () => {}),
    },
    assemblyDir,
  );
  return { parts, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}
