import { Command } from "commander";
import * as z from "zod";
import { MAX_LOOKED_AT } from "../../shared/cards/look-through.ts";
import { EXIT } from "../errors.ts";
import { common, stack, withCommon } from "../options.ts";
import type { Output } from "../output.ts";
import { inSession } from "../session.ts";
import { table } from "../table.ts";
import { inbound, outbound } from "./allowed.ts";
import { lookForPeers, type SeenPeer } from "./look.ts";
import { peerNamed } from "./named.ts";
import { type Rules, rulesOf } from "./policies.ts";
import { HEAD, inFull, type Known, nobodyAccepts, recordOf, rowOf } from "./show.ts";

const options = common.extend({ stack: z.string().optional() });
type Options = z.infer<typeof options>;

export function peersCommand(): Command {
  return withCommon(new Command("peers"))
    .description("show who else is there on NATS, and what is allowed in each direction")
    .argument("[name]", "one of them, in full: its runtime id, or the name or channelRef on its card")
    .option("--stack <name>", "a deployed stack, on whose NATS to look, by whose policies", stack)
    .action(async (name: string | undefined, given: unknown) => {
      process.exitCode = await peers(name, options.parse(given));
    });
}

async function peers(name: string | undefined, given: Options): Promise<number> {
  return inSession(given, async ({ nc, home, place, out }) => {
    const own = new Set(home.agents.map((id) => `${home.deployment}-${id}`));
    const [seen, rules] = await Promise.all([lookForPeers(nc, own), rulesOf(home, place, out)]);
    if (seen.length + own.size >= MAX_LOOKED_AT)
      out.note(`the bucket of cards may hold more: its first ${MAX_LOOKED_AT} keys were read`);
    const known = (name === undefined ? seen : [peerNamed(seen, name)]).map((of) => withRules(of, rules));
    for (const of of known) out.record(recordOf(of, rules.from));
    if (name === undefined) list(known, rules, out);
    else for (const line of known.flatMap((of) => inFull(of))) out.line(line);
    if (rules.from === "file" && rules.agents.length > 0 && known.length > 0)
      out.line("what is allowed is as agents.yaml says; --stack NAME asks a deployed stack");
    return EXIT.ok;
  });
}

function withRules(seen: SeenPeer, { agents }: Rules): Known {
  const skills = seen.peer?.skills.map(({ id }) => id);
  const party = { id: seen.id, ...(skills && { skills }) };
  return {
    ...seen,
    inbound: agents.map((of) => inbound(of, party)),
    outbound: agents.map((of) => outbound(of, party)),
  };
}

function list(known: readonly Known[], { agents }: Rules, out: Output): void {
  if (known.length === 0) {
    out.line("no peers: nobody else shows a card");
    return;
  }
  for (const line of table(HEAD, known.map(rowOf), out.width)) out.line(line);
  const strangers = known.flatMap((of) => nobodyAccepts(of) ?? []);
  for (const line of strangers) out.line(line);
  if (agents.length === 0) out.line("this folder has no agents that could ask them, or be asked");
}
