import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FunctionDeclaration } from "../../../infra/local/stack.ts";
import { median, say } from "../print.ts";
import type { Recording } from "../recording.ts";
import { importTime, sizesOf } from "./bundle.ts";
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
      const ratio = median(times.map(([own, other]) => own / other));
      const [own, other] = [median(times.map(([ms]) => ms)), median(times.map(([, ms]) => ms))];
      rows.push([one.name, ours / KB, theirs / KB, ours / theirs, own, other, ratio]);
      out.figure(`${one.name} size by clients`, ours / theirs);
      out.figure(`${one.name} import by clients`, ratio);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  out.table(
    ["FUNCTION", "AT START, KB", "CLIENTS, KB", "SIZE ×", "IMPORT, MS", "CLIENTS, MS", "TIME ×"],
    rows,
  );
  out.note(
    "Clients: a bundle that only imports the same of AWS's and NATS's clients, as esbuild makes it. ×: the median of the rounds' own.",
  );
}
