import * as z from "zod";
import { stageName } from "../shared/config/cloud.ts";
import { ConfigError, shapeOf } from "../shared/config/config-error.ts";
import { credentials } from "../shared/config/deployment.ts";
import { nearest } from "../shared/config/nearest.ts";
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
 * @param context all that CDK has, its own and others' keys among it
 * @throws ConfigError that names each key that is not as expected, and never its value, which may be a secret
 */
export function readContext(context: Readonly<Record<string, unknown>>): z.output<typeof given> {
  const read = given.safeParse(context);
  const told = (read.error?.issues ?? []).map(
    ({ path: [key], message }) => `context ${String(key)}: ${message}, got ${shapeOf(context[String(key)])}`,
  );
  told.push(...mistyped(Object.keys(context)));
  if (!read.success || told.length > 0) throw new ConfigError(told.join("\n"));
  return read.data;
}

/** CDK passes over what nobody reads, and `-c Stage=dev` would change the stage `main`. Others may have keys, too. */
function mistyped(keys: readonly string[]): string[] {
  const ours: readonly string[] = Object.values(CONTEXT);
  return keys.flatMap((key) => {
    const [meant] = ours.includes(key) ? [] : nearest(key, ours);
    return meant === undefined ? [] : [`context ${key}: unknown; expected ${meant}`];
  });
}
