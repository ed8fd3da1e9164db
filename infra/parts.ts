import { ArnFormat, Stack } from "aws-cdk-lib";
import type { Construct } from "constructs";
import type { CredentialPlaces } from "../shared/remotes/credentials.ts";
import type { Placement } from "./network.ts";
import type { Queues } from "./queues.ts";
import type { SigningKeySecret } from "./signing-key.ts";
import type { Storage } from "./storage.ts";

/** What the functions work with, and where they are. */
export interface Parts {
  readonly storage: Storage;
  readonly queues: Queues;
  readonly signingKey: SigningKeySecret;
  readonly nats: Nats;
  /** Where it is told who we are to remote agents. */
  readonly credentials: CredentialPlaces;
  /** The same of those that agents of ours are, by these agents' ids. */
  readonly fronts: ReadonlyMap<string, CredentialPlaces>;
  /** Without one they are in no VPC. */
  readonly placement?: Placement;
  readonly logRetentionDays: number;
}

/** Where NATS is, when the stack rather than `agents.yaml` says so. */
export interface NatsOverride {
  /** URLs, separated by commas. */
  readonly servers?: string;
  readonly credentials?: string;
}

/** Where NATS is and who the functions are there. */
export interface Nats {
  /** URLs, at least one. */
  readonly servers: readonly string[];
  /** In the form of `nats.credentials`. */
  readonly credentials: string;
  /** What of it the bundles do not know. */
  readonly override: NatsOverride;
}

/** The secret that the functions log in to NATS with, if it is one. */
export function natsSecret({ credentials }: Pick<Nats, "credentials">): string | undefined {
  return /^secret:(.+)$/.exec(credentials)?.[1];
}

/**
 * The ARN of a secret. Secrets Manager adds six characters to a name (Secrets Manager User Guide, "Secret ARN"), which
 * nobody knows before the secret is there.
 *
 * @param name its name, or its ARN
 */
export function secretArn(scope: Construct, name: string): string {
  if (name.startsWith("arn:")) return name;
  return Stack.of(scope).formatArn({
    service: "secretsmanager",
    resource: "secret",
    resourceName: `${name}-??????`,
    arnFormat: ArnFormat.COLON_RESOURCE_NAME,
  });
}
