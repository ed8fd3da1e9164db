import type { NatsConnection } from "@nats-io/transport-node";
import { commandRuntime } from "../shared/config/deployment.ts";
import { CliError, EXIT } from "./errors.ts";
import { findHome, type Home, readFolder, readHome } from "./home.ts";
import { findNats, type NatsOptions, openNats } from "./nats.ts";
import type { Common } from "./options.ts";
import { type Output, processOutput } from "./output.ts";
import type { Place } from "./place.ts";

/** What a verb works with. */
export interface Session {
  readonly nc: NatsConnection;
  readonly home: Home;
  /** The deployed stack that was named, if one was. */
  readonly place?: Place;
  readonly out: Output;
  /** Fires at Ctrl-C, with a CliError as its reason. */
  readonly interrupted: AbortSignal;
}

const own = new URL("..", import.meta.url).pathname.replace(/\/$/, "");

/**
 * Connects, does a verb's work, and takes everything down again.
 *
 * @param options.stack the deployed stack that the verb speaks to, if it does
 * @param work returns the exit code
 * @throws CliError when there is no connection; whatever `work` throws
 */
export async function inSession(
  options: Common & { readonly stack?: string | undefined },
  work: (session: Session) => Promise<number>,
): Promise<number> {
  const { home, place } = await named(options);
  const out = processOutput(options.json);
  const interruption = new AbortController();
  const interrupt = () => {
    if (interruption.signal.aborted) process.exit(EXIT.interrupted); // asked twice: at once
    out.done();
    if (out.interactive) out.line(""); // after the ^C that the terminal shows
    interruption.abort(new CliError(EXIT.interrupted, "interrupted"));
  };
  // Not `once`: the spinner's clean-up ends the process at a signal for which nobody listens any more.
  process.on("SIGINT", interrupt);
  const nc = await openNats(findNats(options, process.env, home), home.deployment);
  void tellTroubles(nc, out);
  try {
    return await work({ nc, home, ...(place && { place }), out, interrupted: interruption.signal });
  } finally {
    out.done();
    process.off("SIGINT", interrupt);
    await nc.close();
  }
}

/** The deployment that the options mean, and its stack where that is named. */
async function named(options: Parameters<typeof inSession>[0]): Promise<{
  readonly home: Home;
  readonly place?: Place;
}> {
  const home = currentHome(options);
  const { stack } = options;
  if (stack === undefined) return { home };
  const [{ findPlace }, { stackHome }] = await Promise.all([import("./place.ts"), import("./stack-home.ts")]);
  const place = await findPlace(home, stack);
  return { home: stackHome(home, place), place };
}

/** The connection mends itself; meanwhile a person who waits should know why nothing happens. */
async function tellTroubles(nc: NatsConnection, out: Output): Promise<void> {
  for await (const { type } of nc.status()) {
    if (type === "disconnect" && !nc.isClosed()) out.note("lost the connection to NATS, trying again");
    if (type === "reconnect") out.note("NATS is back");
  }
}

/**
 * The deployment of the folder that the command is called in, or of the host whose data folder is named.
 *
 * @param options.stack the deployed stack that is named, for which no local host counts
 * @param options.dataFolder of a host; the variable SLUICE_DATA names it otherwise
 * @param reading as {@link readHome}'s; for a stack an `agents.yaml` must be sound
 * @throws CliError as {@link readHome}; `usage` when both are named
 */
export function currentHome(
  { stack, dataFolder }: Pick<NatsOptions, "stack" | "dataFolder">,
  reading: { readonly tolerant?: boolean } = {},
): Home {
  const folder = findHome(process.cwd(), own);
  if (stack === undefined)
    return readHome(folder, dataFolder ?? (process.env.SLUICE_DATA || undefined), reading);
  if (dataFolder === undefined) return readFolder(folder);
  throw new CliError(EXIT.usage, "--stack and --data-folder each name a deployment: give one of them");
}

/** As whom the command acts unless `--from` says otherwise. */
export function ownRuntime(home: Home): string {
  return commandRuntime(home.deployment);
}
