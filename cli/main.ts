import { JetStreamApiCodes, JetStreamApiError } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { Command, CommanderError } from "commander";
import manifest from "../package.json" with { type: "json" };
import { refusalOf } from "../shared/nats/refusal.ts";
import { agentsCommand } from "./agents.ts";
import { approveCommand } from "./approve.ts";
import { artifactCommand } from "./artifact.ts";
import { askCommand } from "./ask.ts";
import { authorizeCommand } from "./authorize.ts";
import { cancelCommand } from "./cancel.ts";
import { cardsCommand } from "./cards.ts";
import { allowCommand, revokeCommand } from "./consent.ts";
import { deadCommand } from "./dead.ts";
import { doctorCommand } from "./doctor.ts";
import { eraseCommand } from "./erase.ts";
import { CliError, EXIT } from "./errors.ts";
import { initCommand } from "./init.ts";
import { keysCommand } from "./keys.ts";
import { logsCommand } from "./logs.ts";
import { permissionAdvice } from "./nats.ts";
import { natsPermissionsCommand } from "./nats-permissions.ts";
import { pauseCommand, resumeCommand } from "./pause.ts";
import { peersCommand } from "./peers/command.ts";
import { policyCommand } from "./policy.ts";
import { remember, repeatPlace } from "./repeat.ts";
import { replyCommand } from "./reply.ts";
import { retryCommand } from "./retry.ts";
import { statusCommand } from "./status.ts";
import { stepsCommand } from "./steps.ts";
import { clean, cleanLine } from "./text.ts";
import { watchCommand } from "./watch.ts";

/** The command line: `sluice <verb> …` (docs/command.md). */
export function program(): Command {
  const sluice = new Command("sluice")
    .description("Give tasks to agents over NATS, as any peer does, and follow them.")
    .version(manifest.version)
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(clean(text).replace(/^error: /, "sluice: ")) })
    .showHelpAfterError("(add --help for what is possible)")
    .hook("preAction", remember);
  const verbs = [
    askCommand(),
    statusCommand(),
    watchCommand(),
    replyCommand(),
    authorizeCommand(),
    cancelCommand(),
    artifactCommand(),
    agentsCommand(),
    cardsCommand(),
    peersCommand(),
    stepsCommand(),
    logsCommand(),
    deadCommand(),
    retryCommand(),
    eraseCommand(),
    pauseCommand(),
    resumeCommand(),
    approveCommand(),
    keysCommand(),
    allowCommand(),
    revokeCommand(),
    policyCommand(),
    doctorCommand(),
    natsPermissionsCommand(),
    initCommand(),
  ];
  for (const verb of verbs) {
    sluice.addCommand(verb.copyInheritedSettings(sluice));
    for (const own of verb.commands) own.copyInheritedSettings(sluice);
  }
  return sluice;
}

/** Turns whatever went wrong into one line and an exit code. */
export function explain(error: unknown): { line: string; exitCode: number } {
  if (error instanceof CliError) return { line: error.message, exitCode: error.exitCode };
  const refusal = refusalOf(error);
  if (refusal !== undefined)
    return { line: `${refusal.says}; ${permissionAdvice(refusal)}`, exitCode: EXIT.unreachable };
  if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound)
    return {
      line: "NATS answers, but has no streams of agents yet: start Sluice with `npm start`, or name another server with --nats",
      exitCode: EXIT.unreachable,
    };
  if (hasNoJetStream(error))
    return {
      line: "NATS answers, but nobody there does JetStream: enable it (nats-server -js), or name another server with --nats",
      exitCode: EXIT.unreachable,
    };
  if (isConnectionTrouble(error))
    return { line: `NATS does not do its part: ${error.message}`, exitCode: EXIT.unreachable };
  const message = error instanceof Error ? error.message : String(error);
  return { line: `unexpected: ${message}`, exitCode: EXIT.failed };
}

const TROUBLES = [
  JetStreamApiError,
  errors.ClosedConnectionError,
  errors.ConnectionError,
  errors.NoRespondersError,
  errors.RequestError,
  errors.TimeoutError,
];

function isConnectionTrouble(error: unknown): error is Error {
  return TROUBLES.some((Trouble) => error instanceof Trouble);
}

function hasNoJetStream(error: unknown): boolean {
  // The client does not export this class of its own.
  if (error instanceof Error && error.name === "JetStreamNotEnabled") return true;
  return error instanceof errors.RequestError && error.isNoResponders();
}

/** Runs a command line and sets the process's exit code. */
async function main(argv: readonly string[]): Promise<void> {
  // A reader that has seen enough (`sluice watch | head`) is no error.
  process.stdout.on("error", (error: NodeJS.ErrnoException) =>
    process.exit(error.code === "EPIPE" ? EXIT.ok : 1),
  );
  try {
    await program().parseAsync([...argv], { from: "user" });
  } catch (error) {
    // commander has said what it had to say; its code is 0 for --help.
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    else {
      const { line, exitCode } = explain(error);
      process.stderr.write(`sluice: ${cleanLine(repeatPlace(line), 2_000)}\n`);
      process.exitCode = exitCode;
    }
  }
}

if (import.meta.main) {
  await main(process.argv.slice(2));
  // The client of NATS leaves the socket of a connection that it has given up; should that come about after all, it
  // would keep the process for ever.
  process.stdout.write("", () => process.stderr.write("", () => process.exit()));
}
