import { currentKey, rotateKey } from "../../shared/cards/keys.ts";
import { confirm } from "../confirm.ts";
import { CliError, EXIT } from "../errors.ts";
import type { KeysOptions } from "../keys.ts";
import { processOutput } from "../output.ts";
import { currentHome } from "../session.ts";
import { openVault, said } from "./open.ts";

/** Puts a new signing key in the current one's place, after it has asked. */
export async function rotate(given: KeysOptions): Promise<number> {
  const out = processOutput(given.json);
  if (!given.yes && !out.interactive)
    throw new CliError(
      EXIT.usage,
      "a key that is replaced is gone for good: without a terminal --yes is required",
    );
  const vault = await openVault(currentHome(given), given.stack);
  const known = await said(currentKey(vault));
  if (known !== undefined && !given.yes && !(await confirm(`Replace the signing key ${known.did}?`))) {
    out.line("nothing is replaced");
    return EXIT.failed;
  }
  const { old, key } = await said(rotateKey(vault, new Date()));
  out.record({ did: key.did, since: key.since, previous: old.did });
  out.line(`${key.did} is the signing key now, in place of ${old.did}`);
  out.note("cards are signed with it within ten minutes; peers follow by what the old key has said of it");
  return EXIT.ok;
}
