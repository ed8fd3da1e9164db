import { SQSClient } from "@aws-sdk/client-sqs";
import { jetstreamManager } from "@nats-io/jetstream";
import { timing } from "../../shared/config/timing.ts";
import { readBySeq } from "../../shared/nats/stream-reads.ts";
import type { Forwarded } from "../../shared/tasks/messages.ts";
import { CliError, EXIT } from "../errors.ts";
import type { Home } from "../home.ts";
import { findNats, type NatsOptions, openNats } from "../nats.ts";
import { clientSettings, findPlace, type Place, reach } from "../place.ts";
import { type OpenStack, openPlace } from "../stack.ts";
import { stackHome } from "../stack-home.ts";
import { browse, type Look, type Take } from "./browse.ts";
import type { Letter } from "./letter.ts";
import { type Pair, pairsOf } from "./pairs.ts";
import type { RedriveDeps } from "./redrive.ts";

/** The most letters that one command looks at, in each queue. */
const MAX_LETTERS = 1_000;
const READ_MS = 3_000;
/** Of those that one beginning of an id means. */
const MAX_LISTED = 5;

/** A deployment's dead letters, open. */
export interface DeadLetters extends RedriveDeps, AsyncDisposable {
  readonly place: Place;
  readonly stack: OpenStack;
  readonly queues: readonly Pair[];
  /** Goes through all the queues that were chosen. */
  look(take?: Take): Promise<Look>;
}

/**
 * Opens the dead letters of a local host, or of a deployed stack.
 *
 * @param queue only this queue's
 * @throws CliError `usage` when there is no such queue or stack, or the stack is of another deployment, or `--nats` is no
 *   URL; `unreachable`
 */
export async function openDeadLetters(
  home: Home,
  given: NatsOptions & { readonly queue?: string | undefined },
): Promise<DeadLetters> {
  const { stack: name, queue } = given;
  const place = await findPlace(home, name);
  const all = pairsOf(place.outputs);
  const queues = queue === undefined ? all : all.filter((pair) => pair.name === queue);
  if (queues.length === 0) throw noQueue(place, all, queue);
  const client = new SQSClient(clientSettings(place, "sqs"));
  const stack = openPlace(place);
  const streams = streamReader(stackHome(home, place), given);
  return {
    place,
    stack,
    queues,
    client,
    store: stack.store,
    timing: timing(place.local?.timeScale),
    now: Date.now,
    onStream: streams.holds,
    async look(take) {
      const bounds = { limit: MAX_LETTERS, ...(take && { take }) };
      const looks: Look[] = await Promise.all(
        queues.map((pair) => reach(place.label, browse(client, pair, bounds))),
      );
      return {
        letters: looks.flatMap(({ letters }) => letters),
        hidden: looks.reduce((sum, { hidden }) => sum + hidden, 0),
        more: looks.some(({ more }) => more),
      };
    },
    async [Symbol.asyncDispose]() {
      stack[Symbol.dispose]();
      client.destroy();
      await streams.close();
    },
  };
}

function noQueue({ label }: Place, all: readonly Pair[], queue: string | undefined): CliError {
  if (all.length === 0)
    return new CliError(
      EXIT.failed,
      `${label} does not tell its queues: it runs an older version; start it, or deploy it, again`,
    );
  const known = all.map(({ name }) => name).join(", ");
  return new CliError(EXIT.usage, `--queue ${queue}: there is no such queue; there are ${known}`);
}

/** Looks messages up in their streams; NATS is asked only for those whose body did not travel with them. */
function streamReader(home: Home, given: NatsOptions) {
  const where = findNats(given, process.env, home);
  let connecting: ReturnType<typeof openNats> | undefined;
  return {
    async holds({ stream, seq }: Forwarded): Promise<boolean | undefined> {
      try {
        connecting ??= openNats(where, home.deployment);
        const jsm = await jetstreamManager(await connecting, { checkAPI: false, timeout: READ_MS });
        return (await readBySeq(jsm, stream, seq)) !== null;
      } catch (error) {
        // What was named must be readable: nobody else finds that out.
        const isNamed = (given.creds ?? given.ca) !== undefined;
        if (isNamed && error instanceof CliError && error.exitCode === EXIT.usage) throw error;
        return undefined; // The function will find out, and the letter comes back.
      }
    },
    async close(): Promise<void> {
      const nc = await connecting?.catch(() => undefined);
      await nc?.close();
    },
  };
}

/**
 * The letter that a person means by the beginning of its id.
 *
 * @throws CliError `failed` when there is none; `usage` when several begin so
 */
export function meantLetter(letters: readonly Letter[], id: string): Letter {
  const found = letters.filter((letter) => letter.id.startsWith(id));
  const [first] = found;
  if (first === undefined) throw noLetter(id);
  if (found.length === 1) return first;
  const listed = found.slice(0, MAX_LISTED).map((letter) => letter.id);
  const more = found.length > MAX_LISTED ? `, and ${found.length - MAX_LISTED} more` : "";
  throw new CliError(EXIT.usage, `dead letter ${id}: several begin so: ${listed.join(", ")}${more}`);
}

/** There is no such letter. */
export function noLetter(id: string): CliError {
  return new CliError(
    EXIT.failed,
    `no dead letter ${id}: it is gone, or somebody else has it in hand for a minute; see ./sluice dead list`,
  );
}
