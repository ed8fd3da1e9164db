import * as z from "../zod.ts";
import type { DeploymentConfig } from "./deployment.ts";
import { CREDENTIALS, SERVER_URL } from "./forms.ts";

/** A process's environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What is read once: to compile a parser for it, as zod does, would take longer. */
const ONCE = { jitless: true };

const name = z.string().check(z.minLength(1));
const url = z.url("expected a URL");

/** What the stack tells its functions (infra/functions.ts). */
const variables = {
  TABLE_NAME: name,
  BUCKET_NAME: name,
  TASKS_QUEUE_URL: url,
  CONTROLS_QUEUE_URL: url,
  EVENTS_QUEUE_URL: url,
  INSTANCE_ID: name,
};
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
    const parsed = variables[name].safeParse(env[name], ONCE);
    if (parsed.success) read[name] = parsed.data;
    else
      wrong.push(
        `${name}: expected ${name.endsWith("URL") ? "a URL" : "a name"}, got ${env[name] ?? "nothing"}`,
      );
  }
  if (wrong.length > 0) throw new Error(`the function's environment: ${wrong.join("; ")}`);
  // Each name was either read or is wrong.
  return read as Record<Name, string>;
}

/** Where hints go. */
export interface WorkQueues {
  /** The URL of the queue that agents share; the work function of a single agent knows none. */
  readonly shared?: string;
  /** URLs of the queues that agents have of their own, by runtime. */
  readonly own: ReadonlyMap<string, string>;
}

const json = z.pipe(
  z.string(),
  z.transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.issues.push({ code: "custom", input: text, message: "expected JSON" });
      return z.NEVER;
    }
  }),
);
const workQueueVariables = z
  .object({
    WORK_QUEUE_URL: z.optional(url),
    WORK_QUEUE_URLS: z.optional(z.pipe(json, z.record(z.string(), url))),
  })
  .check(
    z.refine((of) => of.WORK_QUEUE_URL !== undefined || of.WORK_QUEUE_URLS !== undefined, {
      error: "expected a URL, got nothing",
      path: ["WORK_QUEUE_URL"],
    }),
  );

/**
 * The queues for hints: `WORK_QUEUE_URL`, and as a JSON object by runtime `WORK_QUEUE_URLS`.
 *
 * @throws Error that names the variable that is missing or not as expected
 */
export function workQueues(env: Environment): WorkQueues {
  const parsed = z.safeParse(workQueueVariables, env, ONCE);
  if (!parsed.success) throw new Error(`the function's environment: ${z.prettifyError(parsed.error)}`);
  const { WORK_QUEUE_URL: shared, WORK_QUEUE_URLS: own = {} } = parsed.data;
  return { own: new Map(Object.entries(own)), ...(shared !== undefined && { shared }) };
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
    NATS_SERVERS: z.optional(z.pipe(list, z.array(z.string().check(...SERVER_URL)))),
    NATS_CREDENTIALS: z.optional(z.string().check(CREDENTIALS)),
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
    if (!parsed.success) throw new Error(`the function's environment: ${z.prettifyError(parsed.error)}`);
    const { servers, credentials: own, ca } = deployment.nats;
    return {
      servers: parsed.data.NATS_SERVERS ?? servers,
      credentials: parsed.data.NATS_CREDENTIALS ?? own,
      ...(ca !== undefined && { ca }),
    };
  });
}

/** What functions read of their environment by a schema, for docs/configuration.md. */
export type FunctionVariable =
  | keyof typeof variables
  | keyof z.infer<typeof workQueueVariables>
  | keyof z.Used<typeof override>;
