import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FunctionDeclaration } from "../../../infra/local/stack.ts";
import { median, say } from "../print.ts";
import type { Recording } from "../recording.ts";
import { type Imported, importTime, sizesOf } from "./bundle.ts";
import { writeClients } from "./clients.ts";

const KB = 1_024;

/**
 * Each function's bundle beside one that only imports the same of AWS's and NATS's clients: what our own code and the
 * other packages add to a start.
 */
export async function besideClients(
  functions: readonly FunctionDeclaration[],
  rounds: number,
  out: Recording,
): Promise<void> {
  say(`each bundle beside one of the same clients alone, ${rounds} times …`);
  const folder = mkdtempSync(join(tmpdir(), "sluice-clients-"));
  const rows: (string | number)[][] = [];
  try {
    for (const one of functions) {
      const clients = join(folder, one.name);
      await writeClients(`${one.environment.POWERTOOLS_SERVICE_NAME}/handler.ts`, clients);
      const times = Array.from(
        { length: rounds },
        () => [importTime(one), importTime(one, clients)] as const,
      );
      const [ours, theirs] = [sizesOf(one.codeDir).atStart, sizesOf(clients).atStart];
      const ratio = (of: keyof Imported) => median(times.map(([own, other]) => own[of] / other[of]));
      const [own, other] = [median(times.map(([{ ms }]) => ms)), median(times.map(([, { ms }]) => ms))];
      const [byTime, byCpu] = [ratio("ms"), ratio("cpuMs")];
      rows.push([one.name, ours / KB, theirs / KB, ours / theirs, own, other, byTime, byCpu]);
      out.figure(`${one.name} size by clients`, ours / theirs);
      out.figure(`${one.name} import by clients`, byTime);
      out.figure(`${one.name} import CPU by clients`, byCpu);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  out.table(
    ["FUNCTION", "AT START, KB", "CLIENTS, KB", "SIZE ×", "IMPORT, MS", "CLIENTS, MS", "TIME ×", "CPU ×"],
    rows,
  );
  out.note(
    "Clients: a bundle that only imports the same of AWS's and NATS's clients, built as functions are. ×: the median of the rounds' own. CPU: what the process computed.",
  );
}
