import * as z from "zod";
import { credentials, type DeploymentConfig, serverUrl } from "./deployment.ts";

/** A process's environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What the stack tells its functions (infra/functions.ts). */
const variables = {
  TABLE_NAME: z.string().min(1).describe("The table in which tasks are."),
  BUCKET_NAME: z.string().min(1).describe("The bucket in which large values are."),
  TASKS_QUEUE_URL: z.url().describe("Where tasks are forwarded to."),
  CONTROLS_QUEUE_URL: z.url().describe("Where controls are forwarded to."),
  EVENTS_QUEUE_URL: z.url().describe("Where events of delegated tasks are forwarded to."),
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
    const parsed = variables[name].safeParse(env[name]);
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

const workQueueVariables = z
  .object({
    WORK_QUEUE_URL: z
      .url("expected a URL")
      .optional()
      .describe("Where hints go that a task may be claimed. A work function of an agent's own has none."),
    WORK_QUEUE_URLS: z
      .string()
      .transform((text, context) => {
        try {
          return JSON.parse(text) as unknown;
        } catch {
          context.addIssue("expected JSON");
          return z.NEVER;
        }
      })
      .pipe(z.record(z.string(), z.url("expected a URL")))
      .optional()
      .describe(
        "As a JSON object by runtime, the queues of agents with a `function`; only its own in such a function.",
      ),
  })
  .refine((of) => of.WORK_QUEUE_URL !== undefined || of.WORK_QUEUE_URLS !== undefined, {
    error: "expected a URL, got nothing",
    path: ["WORK_QUEUE_URL"],
  });

/**
 * The queues for hints: `WORK_QUEUE_URL`, and as a JSON object by runtime `WORK_QUEUE_URLS`.
 *
 * @throws Error that names the variable that is missing or not as expected
 */
export function workQueues(env: Environment): WorkQueues {
  const parsed = workQueueVariables.safeParse(env);
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

const override = z.object({
  NATS_SERVERS: z
    .string()
    .transform((value) => value.split(",").map((url) => url.trim()))
    .pipe(z.array(serverUrl).min(1))
    .optional()
    .describe("Servers, divided by commas; override the deployment's."),
  NATS_CREDENTIALS: credentials.optional().describe("Overrides the deployment's `nats.credentials`."),
});

/**
 * How the functions reach NATS: as the environment says (`NATS_SERVERS`, separated by commas, and `NATS_CREDENTIALS`),
 * else as the deployment does.
 *
 * @throws Error that names the variable that is not as expected
 */
export function natsAccess(deployment: DeploymentConfig, env: Environment): NatsAccess {
  const parsed = override.safeParse(env);
  if (!parsed.success) throw new Error(`the function's environment: ${z.prettifyError(parsed.error)}`);
  const { servers, credentials: own, ca } = deployment.nats;
  return {
    servers: parsed.data.NATS_SERVERS ?? servers,
    credentials: parsed.data.NATS_CREDENTIALS ?? own,
    ...(ca !== undefined && { ca }),
  };
}

/** All that functions read of their environment by a schema, for docs/configuration.md. */
export const functionVariables = { ...variables, ...workQueueVariables.shape, ...override.shape };
