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
