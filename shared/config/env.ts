import * as z from "../zod.ts";
import type { DeploymentConfig } from "./deployment.ts";
import { credentialsCheck, serverUrlChecks } from "./forms.ts";

/** A process's environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What is read once: to compile a parser for it, as zod does, would take longer. */
const ONCE = { jitless: true };

/** What the stack tells its functions (infra/functions.ts), checked without zod: a start waits for it. */
const variables = {
  TABLE_NAME: "a name",
  BUCKET_NAME: "a name",
  TASKS_QUEUE_URL: "a URL",
  CONTROLS_QUEUE_URL: "a URL",
  EVENTS_QUEUE_URL: "a URL",
  INSTANCE_ID: "a name",
} as const;
export type VariableName = keyof typeof variables;

/**
 * The variables that a function needs.
 *
 * @throws Error that names each variable that is missing or not as expected
 */
export function readEnv<const Name extends VariableName>(
  names: readonly Name[],
  env: Environment,
): Record<Name, string> {
  const read: Partial<Record<VariableName, string>> = {};
  const wrong: string[] = [];
  for (const name of names) {
    const [value, expected] = [env[name], variables[name]];
    if (expected === "a URL" ? isUrl(value) : value) read[name] = value;
    else wrong.push(`${name}: expected ${expected}, got ${value ?? "nothing"}`);
  }
  if (wrong.length > 0) throw misfit(wrong.join("; "));
  // Each name was either read or is wrong.
  return read as Record<Name, string>;
}

function isUrl(value: unknown): value is string {
  return typeof value === "string" && URL.canParse(value);
}

function misfit(what: string): Error {
  return new Error(`the function's environment: ${what}`);
}

/** Where hints go. */
export interface WorkQueues {
  /** The URL of the queue that agents share; the work function of a single agent knows none. */
  readonly shared?: string;
  /** URLs of the queues that agents have of their own, by runtime. */
  readonly own: ReadonlyMap<string, string>;
}

/**
 * The queues for hints: `WORK_QUEUE_URL`, and as a JSON object by runtime `WORK_QUEUE_URLS`.
 *
 * @throws Error that names the variable that is missing or not as expected
 */
export function workQueues(env: Environment): WorkQueues {
  const { WORK_QUEUE_URL: shared, WORK_QUEUE_URLS: own } = env;
  if (shared === undefined ? own === undefined : !isUrl(shared))
    throw misfit(`WORK_QUEUE_URL: expected a URL, got ${shared ?? "nothing"}`);
  return {
    own: new Map(own === undefined ? [] : urlsByRuntime(own)),
    ...(shared !== undefined && { shared }),
  };
}

function urlsByRuntime(text: string): [runtime: string, url: string][] {
  const form = `WORK_QUEUE_URLS: expected JSON, an object of URLs, got ${text}`;
  let urls: unknown;
  try {
    urls = JSON.parse(text);
  } catch {
    throw misfit(form);
  }
  if (typeof urls !== "object" || urls === null || Array.isArray(urls)) throw misfit(form);
  return Object.entries(urls).map(([runtime, url]: [string, unknown]) => {
    if (!isUrl(url)) throw misfit(`WORK_QUEUE_URLS.${runtime}: expected a URL, got ${JSON.stringify(url)}`);
    return [runtime, url];
  });
}

/** How to reach NATS. */
export interface NatsAccess {
  readonly servers: string[];
  readonly credentials: string;
  readonly ca?: string;
}

const override = z.whenUsed(() => {
  const list = z.pipe(
    z.string(),
    z.transform((value) => value.split(",").map((of) => of.trim())),
  );
  return z.object({
    NATS_SERVERS: z.optional(z.pipe(list, z.array(z.string().check(...serverUrlChecks())))),
    NATS_CREDENTIALS: z.optional(z.string().check(credentialsCheck())),
  });
});

/**
 * How the functions reach NATS: as the environment says (`NATS_SERVERS`, separated by commas, and `NATS_CREDENTIALS`),
 * else as the deployment does. Both are read when it is first asked for.
 *
 * @returns what gives it, or throws an Error that names the variable that is not as expected, the same each time
 */
export function natsAccess(deployment: DeploymentConfig, env: Environment): () => NatsAccess {
  return z.whenUsed(() => {
    const parsed = z.safeParse(override(), env, ONCE);
    if (!parsed.success) throw misfit(z.prettifyError(parsed.error));
    const { servers, credentials: own, ca } = deployment.nats;
    return {
      servers: parsed.data.NATS_SERVERS ?? servers,
      credentials: parsed.data.NATS_CREDENTIALS ?? own,
      ...(ca !== undefined && { ca }),
    };
  });
}

/** What functions read of their environment here, for docs/configuration.md. */
export type FunctionVariable =
  | VariableName
  | "WORK_QUEUE_URL"
  | "WORK_QUEUE_URLS"
  | keyof z.Used<typeof override>;
