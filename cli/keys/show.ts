import { chainOf, currentKey } from "../../shared/cards/keys.ts";
import { EXIT } from "../errors.ts";
import type { KeysOptions } from "../keys.ts";
import { processOutput } from "../output.ts";
import { currentHome } from "../session.ts";
import { localTime } from "../text.ts";
import { openVault, said } from "./open.ts";

/** Shows the signing key; what is private of it is never shown. */
export async function show(given: KeysOptions): Promise<number> {
  const out = processOutput(given.json);
  const vault = await openVault(currentHome(given), given.stack);
  const key = await said(currentKey(vault));
  if (key === undefined) {
    out.note("there is no signing key yet; it is made when the first card is signed");
    return EXIT.ok;
  }
  const { did, since } = key;
  const successions = await chainOf(key);
  out.record({ did, since, successions });
  out.line(did);
  out.line(`  in use since ${localTime(new Date(since))}`);
  for (const { from, at } of successions.toReversed())
    out.line(`  follows ${from}, which said so on ${localTime(new Date(at))}`);
  return EXIT.ok;
}
