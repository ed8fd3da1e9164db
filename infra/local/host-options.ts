import type { AlarmChange } from "./metrics/alarms.ts";

/** What the host tells while it starts and runs. */
export type HostEvent =
  /** Something is being done that the user waits for. */
  | { readonly type: "progress"; readonly message: string }
  /** A line of a function's log. */
  | { readonly type: "line"; readonly functionName: string; readonly line: string }
  /** An alarm of the stack has changed its state. */
  | ({ readonly type: "alarm"; readonly message: string } & AlarmChange)
  /** Something went wrong that the host copes with. */
  | { readonly type: "trouble"; readonly message: string };

/** Where the parts are. `nats` may name several servers, separated by commas. */
export interface Endpoints {
  readonly dynamodb: string;
  readonly sqs: string;
  readonly s3: string;
  readonly nats: string;
}

export interface HostOptions {
  /** The one folder in which everything lives that outlasts the host. */
  readonly dataDir: string;
  /** The folder that `cdk synth` wrote; or what makes it, called once the data folder is this host's alone. */
  readonly assemblyDir: string | (() => Promise<string>);
  /** What the assembly was made of, as absolute paths; `host.json` tells it to the command. */
  readonly files?: { readonly config: string; readonly agentsDir: string };
  /** The port of the host's own NATS server; 0 for any; 4222 if absent. */
  readonly natsPort?: number;
  /** An existing NATS server to be used instead. */
  readonly nats?: ExistingNats;
  /** How many times faster than declared schedules, visibility and timeouts are; 1 if absent. */
  readonly timeScale?: number;
  /**
   * The shortest timeout of a function that the time scale may come to, in milliseconds; 3,000 if absent. What a
   * client waits for an answer is not scaled, so who makes parts unreachable under a time scale needs more.
   */
  readonly shortestTimeoutMs?: ShortestTimeout;
  /** The clock of metrics and alarms, in milliseconds; the deployment's own time if absent. */
  readonly metricsClock?: () => number;
  /** Gives up starting. */
  readonly signal?: AbortSignal;
  readonly log?: (event: HostEvent) => void;
  /** What the functions get to see in place of the real endpoints, so that a test can stand between. */
  readonly route?: (real: Endpoints) => Promise<Endpoints>;
  /** Further environment of the functions, or what makes it for one of them. */
  readonly env?: FurtherEnvironment | ((functionName: string) => FurtherEnvironment);
  /** What runs a function's bundle, as arguments of Node: a file first. Default: the host's own. */
  readonly runtime?: readonly string[];
}

/** In milliseconds; the same for all functions, or what gives it for the function of a name. */
export type ShortestTimeout = number | ((functionName: string) => number);

export type FurtherEnvironment = Readonly<Record<string, string>>;

export interface ExistingNats {
  readonly servers: readonly string[];
  /** `none`, or `file:PATH`; as in `agents.yaml`. */
  readonly credentials?: string;
  /** A PEM file with the certificate authority of the server's TLS. */
  readonly ca?: string;
}
