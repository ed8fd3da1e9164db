import * as z from "zod";
import { nearest } from "../cli/nearest.ts";
import { stageName } from "../shared/config/cloud.ts";
import { ConfigError, shapeOf } from "../shared/config/config-error.ts";
import { credentials } from "../shared/config/deployment.ts";
import { readServerUrls } from "../shared/config/server-urls.ts";

/** The app's context keys. */
export const CONTEXT = {
  agents: "agents",
  config: "config",
  stage: "stage",
  bridge: "bridge",
  natsServers: "natsServers",
  natsCredentials: "natsCredentials",
} as const;

interface ContextOption {
  /** What is written after `-c`. */
  readonly usage: string;
  readonly fallback: string;
  readonly meaning: string;
}

/** How an operator gives each of them (docs/configuration.md, which is written from here: `npm run docs`). */
export const CONTEXT_OPTIONS: Readonly<Record<keyof typeof CONTEXT, ContextOption>> = {
  agents: {
    usage: "agents=FOLDER",
    fallback: "`agents`",
    meaning: "The agents' files. The folder may lie anywhere.",
  },
  config: {
    usage: "config=FILE",
    fallback: "`agents.yaml`",
    meaning: "The operator's file; one that is named must be there.",
  },
  stage: { usage: "stage=NAME", fallback: "the file's", meaning: "Overrides `cloud.stage`." },
  bridge: {
    usage: "bridge=lambda",
    fallback: "the file's",
    meaning: "Makes the bridge a function whatever the file says, as the local host does.",
  },
  natsServers: {
    usage: "natsServers=URL,URL",
    fallback: "the file's",
    meaning: "Where the deployed functions find NATS.",
  },
  natsCredentials: {
    usage: "natsCredentials=…",
    fallback: "the file's",
    meaning: "Who they are there, in the form of `nats.credentials`.",
  },
};

/** Libraries' keys have a prefix; of those that the CDK command line stores only these have none (`cdk acknowledge`). */
const LIBRARYS = /[:/]|^(cli-)?acknowledged-issue-numbers$/;

/**
 * Looks for keys that this app does not know. One that is nearly a known one is an error: `-c stag=dev` would make
 * another stack than was meant. Any other is told and passed over, because the app cannot see where a key comes from:
 * `~/.cdk.json` gives its own to every app of the user (AWS CDK Developer Guide, "Context values and the AWS CDK").
 *
 * @param keys all that CDK has
 * @returns what to tell of those that are passed over
 * @throws ConfigError that names each mistyped key, and the one that was probably meant
 */
export function checkKeys(keys: readonly string[]): string[] {
  const known = Object.values(CONTEXT);
  const strange = keys.filter((key) => !known.some((of) => of === key) && !LIBRARYS.test(key));
  const named = (key: string) => `context ${JSON.stringify(key)}: there is no such key`;
  const mistyped = strange.flatMap((key) => {
    const meant = nearest(key, known);
    return meant === undefined ? [] : [`${named(key)}, did you mean ${meant}?`];
  });
  if (mistyped.length > 0) throw new ConfigError(mistyped.join("\n"));
  return strange.map((key) => `${named(key)}, it is passed over; known are ${known.join(", ")}`);
}

const text = z.string("expected a text").min(1, "expected a text that is not empty");
const servers = text.transform((urls, context) => {
  const read = readServerUrls(urls);
  if ("urls" in read) return read.urls.join(",");
  context.addIssue({ code: "custom", message: read.wrong });
  return z.NEVER;
});

/** What each of them may be: `undefined` where it is not given. */
const given = z.object({
  agents: text.optional(),
  config: text.optional(),
  stage: text.pipe(stageName).optional(),
  bridge: z.literal("lambda", "expected lambda").optional(),
  natsServers: servers.optional(),
  natsCredentials: text.pipe(credentials).optional(),
});

/**
 * Reads the context. An empty value is refused as well: it comes of a variable that is not set, and
 * `-c stage=$STAGE` must not change the stage `main` then.
 *
 * @param inContext what CDK has under a key
 * @throws ConfigError that names each key that is not as expected, and never its value, which may be a secret
 */
export function readContext(inContext: (key: string) => unknown): z.output<typeof given> {
  const values = Object.fromEntries(Object.values(CONTEXT).map((key) => [key, inContext(key)]));
  const read = given.safeParse(values);
  if (read.success) return read.data;
  const told = read.error.issues.map(
    ({ path: [key], message }) => `context ${String(key)}: ${message}, got ${shapeOf(values[String(key)])}`,
  );
  throw new ConfigError(told.join("\n"));
}
