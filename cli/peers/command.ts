import { Command, Option } from "commander";
import * as z from "zod";
import { STALE_AFTER_MS } from "../../shared/cards/bucket-facts.ts";
import { MAX_LOOKED_AT } from "../../shared/cards/look-through.ts";
import { EXIT } from "../errors.ts";
import { common, DATA_FOLDER, STACK, stack, withCommon } from "../options.ts";
import type { Output } from "../output.ts";
import { inSession } from "../session.ts";
import { table } from "../table.ts";
import { inbound, outbound } from "./allowed.ts";
import { lookForPeers, type SeenPeer } from "./look.ts";
import { peerNamed } from "./named.ts";
import { type Rules, rulesOf } from "./policies.ts";
import { type KnownRemote, knownRemotes } from "./remotes.ts";
import { HEAD, inFull, type Known, nobodyAccepts, recordOf, rowOf } from "./show.ts";
import { REMOTES_HEAD, remoteAdvice, remoteInFull, remoteRecord, remoteRow } from "./show-remotes.ts";

const options = common.extend({ stack: z.string().optional() });
type Options = z.infer<typeof options>;

/** What the verbs of `peers` take, which speak to a stack alone. */
const verbOptions = z.object({
  stack: z.string().optional(),
  dataFolder: z.string().optional(),
  json: z.boolean().default(false),
});
export type VerbOptions = z.infer<typeof verbOptions>;
const acceptOptions = verbOptions.extend({
  key: z.string().optional(),
  unsigned: z.boolean().default(false),
});
export type AcceptOptions = z.infer<typeof acceptOptions>;

export function peersCommand(): Command {
  return withCommon(new Command("peers"))
    .description("show who else is there, on NATS and over HTTP, and what is allowed in each direction")
    .argument("[name]", "one of them, in full: its runtime id or name, or what its card calls it")
    .option("--stack <name>", "a deployed stack, on whose NATS to look, by whose policies", stack)
    .action(async (name: string | undefined, given: unknown) => {
      process.exitCode = await peers(name, options.parse(given));
    })
    .addCommand(
      verb("refresh", "fetch the cards of remote agents now")
        .argument("[name]", "one of them, as agents.yaml calls it (default: all)")
        .action(async (name: string | undefined, _: unknown, command: Command) => {
          const { refresh } = await import("./refresh.ts");
          process.exitCode = await refresh(name, verbOptions.parse(command.optsWithGlobals()));
        }),
    )
    .addCommand(
      verb("accept", "take the key that a remote agent's card is signed with in place of the one before")
        .argument("<name>", "the agent, as agents.yaml calls it")
        .option("--key <did>", "the key that is meant, as `peers NAME` shows it; asks nobody")
        .addOption(
          new Option(
            "--unsigned",
            "take its next card whatever key has signed it, or none; needs a terminal",
          ).conflicts("key"),
        )
        .action(async (name: string, _: unknown, command: Command) => {
          const { accept } = await import("./accept.ts");
          process.exitCode = await accept(name, acceptOptions.parse(command.optsWithGlobals()));
        }),
    );
}

/** A verb within `peers`, whose options commander takes for that one's where both have them, wherever they stand. */
function verb(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .option(...STACK)
    .option(...DATA_FOLDER)
    .option("--json", "one JSON object a line, for programs");
}

async function peers(name: string | undefined, given: Options): Promise<number> {
  return inSession(given, async ({ nc, home, place, out }) => {
    const own = new Set(home.agents.map((id) => `${home.deployment}-${id}`));
    const [{ peers: seen, lately }, rules] = await Promise.all([
      lookForPeers(nc, own),
      rulesOf(home, place, out),
    ]);
    const remotes = await knownRemotes(home, place, rules, out);
    if (lately)
      out.note(
        `the bucket of cards holds more than ${MAX_LOOKED_AT} keys: only those put within the last ${STALE_AFTER_MS / 1_000} seconds were read, at most as many`,
      );
    const meant = meantBy(name, seen, remotes);
    const known = meant.seen.map((of) => withRules(of, rules));
    for (const of of known) out.record(recordOf(of, rules.from));
    for (const of of meant.remotes) out.record(remoteRecord(of, rules.from));
    if (name === undefined) list(known, meant.remotes, rules, out);
    else
      for (const line of [...known.flatMap(inFull), ...meant.remotes.flatMap(remoteInFull)]) out.line(line);
    if (rules.from === "file" && rules.agents.length > 0 && known.length + meant.remotes.length > 0)
      out.line("what is allowed is as agents.yaml says; --stack NAME asks a deployed stack");
    return EXIT.ok;
  });
}

/** Those that a name means; all without one. What the operator's file calls so goes before what cards do. */
function meantBy(name: string | undefined, seen: readonly SeenPeer[], remotes: readonly KnownRemote[]) {
  if (name === undefined) return { seen, remotes };
  const remote = remotes.find(({ peer }) => peer.id === name);
  if (remote !== undefined) return { seen: [], remotes: [remote] };
  return {
    seen: [
      peerNamed(
        seen,
        name,
        remotes.map(({ peer }) => peer.id),
      ),
    ],
    remotes: [],
  };
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

function list(
  known: readonly Known[],
  remotes: readonly KnownRemote[],
  { agents }: Rules,
  out: Output,
): void {
  if (known.length === 0) out.line("no peers: nobody else shows a card");
  else for (const line of table(HEAD, known.map(rowOf), out.width)) out.line(line);
  const strangers = known.flatMap((of) => nobodyAccepts(of) ?? []);
  for (const line of strangers) out.line(line);
  if (remotes.length > 0)
    for (const line of table(REMOTES_HEAD, remotes.map(remoteRow), out.width)) out.line(line);
  for (const line of remotes.flatMap(remoteAdvice)) out.line(line);
  if (known.length > 0 && agents.length === 0)
    out.line("this folder has no agents that could ask them, or be asked");
}
