import { BLAST_RADII, HITL_MODES } from "../remotes/hitl/scales.ts";
import * as z from "../zod.ts";
import type { DeploymentConfig } from "./deployment.ts";
import {
  credentialsCheck,
  deploymentNameCheck,
  runtimeIdCheck,
  runtimeOrAnyoneCheck,
  serverUrlChecks,
  slugCheck,
} from "./forms.ts";
import {
  headerName,
  headerValue,
  remoteCredentials,
  remoteName,
  remoteUrl,
  skillName,
} from "./remote-forms.ts";

/**
 * A deployment as bundles carry it, in the module `sluice:deployment`: read at synth (deployment.ts), nothing left out.
 * Functions see that it is what they were written for; how much of each thing there may be was judged before, and is not
 * judged again.
 */

const text = z.whenUsed(() => z.string());
const texts = z.whenUsed(() => z.array(text()));
const int = z.whenUsed(() => z.int());
const flag = z.whenUsed(() => z.boolean());
const slug = z.whenUsed(() => text().check(slugCheck()));
const runtimeOrAnyone = z.whenUsed(() => text().check(runtimeOrAnyoneCheck()));

/** A policy with all its fields. */
export const bundledPolicy = z.whenUsed(() =>
  z.strictObject({
    enabled: flag(),
    acceptFromRuntimes: z.array(runtimeOrAnyone()),
    acceptSkills: z.array(slug()),
    resultVisibility: z.enum(["any", "proxy", "transparent"]),
    timeoutSec: z.strictObject({ default: int(), max: int() }),
    maxDelegationDepth: int(),
    maxConcurrent: int(),
    maxQueued: int(),
    quotas: z.strictObject({ open: int(), openPerPeer: int() }),
    statusEverySec: z.number(),
    eventsPerMin: int(),
    discoverable: flag(),
    exposeSkills: z.array(
      z.strictObject({ id: slug(), inputModes: z.optional(texts()), outputModes: z.optional(texts()) }),
    ),
    delegateTargets: z.array(z.strictObject({ runtimeAgentId: runtimeOrAnyone(), skillId: text() })),
    delegateMedia: z.strictObject({ allowedMimeTypes: texts(), maxBytes: int(), allowObjectRefs: flag() }),
    allowMemoryWrite: flag(),
  }),
);

const hosted = z.whenUsed(
  (): z.ZodMiniType<Pick<DeploymentConfig, "agents">> =>
    z.strictObject({
      agents: z.array(
        z.strictObject({
          id: text(),
          runtime: text().check(runtimeIdCheck()),
          channelRef: slug(),
          displayName: text(),
          description: text(),
          version: text(),
          skills: z.array(z.strictObject({ slug: slug(), name: text(), description: text(), tags: texts() })),
          remote: z.optional(text()),
          policy: bundledPolicy(),
          settings: z.unknown(),
        }),
      ),
    }),
);

const hitl = () => ({ mode: z.optional(z.enum(HITL_MODES)), radius: z.optional(z.enum(BLAST_RADII)) });

const othersOf = z.whenUsed(
  (): z.ZodMiniType<Pick<DeploymentConfig, (typeof OTHERS)[number]>> =>
    z.strictObject({
      discovery: z.optional(z.looseObject({ discordGuildId: z.optional(text()) })),
      remotes: z.optional(
        z.array(
          z.strictObject({
            name: text().check(remoteName()),
            url: text().check(...remoteUrl()),
            auth: z.optional(
              z.strictObject({
                scheme: z.enum(["apiKey", "bearer", "hmac"]),
                credentials: text().check(remoteCredentials()),
              }),
            ),
            headers: z.record(text().check(...headerName()), text().check(headerValue())),
            streaming: z.boolean(),
            external: z.boolean(),
            skills: z.array(
              z.strictObject({
                name: text().check(skillName()),
                description: z.optional(text()),
                hitl: z.optional(z.strictObject(hitl())),
              }),
            ),
            hitl: z.optional(z.strictObject({ ...hitl(), approvalSec: z.optional(z.int()) })),
            subscribesTo: z.array(text()),
          }),
        ),
      ),
      outbound: z.optional(z.strictObject({ allow: z.array(text()) })),
      choosing: z.optional(
        z.strictObject({ default: z.optional(text()), cooldownSec: z.record(slug(), int()) }),
      ),
    }),
);

const place = z.whenUsed(
  (): z.ZodMiniType<Pick<DeploymentConfig, "deployment" | "nats">> =>
    z.strictObject({
      deployment: text().check(deploymentNameCheck()),
      nats: z.strictObject({
        servers: z.array(text().check(...serverUrlChecks())),
        credentials: text().check(credentialsCheck()),
        ca: z.optional(text()),
      }),
    }),
);

/** What there need not be. */
const OTHERS = ["discovery", "remotes", "outbound", "choosing"] as const;

/**
 * What a bundle carries. Each part is read when it is first asked for: a start does not wait for what the first request
 * may not need.
 *
 * @throws Error that names a member that it should not have; of the others, what is not as expected when they are asked for
 */
export function readBundled(value: Readonly<Record<string, unknown>>): DeploymentConfig {
  const { deployment, nats, agents, ...rest } = value;
  for (const name of Object.keys(rest))
    if (!OTHERS.some((known) => known === name))
      throw new Error(`the deployment's configuration: there is no "${name}"`);
  const at = z.whenUsed(() => read(place(), { deployment, nats }));
  const own = z.whenUsed(() => read(hosted(), { agents }));
  const others = z.whenUsed(() => read(othersOf(), rest));
  const config: DeploymentConfig = {
    get deployment() {
      return at().deployment;
    },
    get nats() {
      return at().nats;
    },
    get agents() {
      return own().agents;
    },
  };
  for (const name of OTHERS)
    if (rest[name] !== undefined)
      Object.defineProperty(config, name, { enumerable: true, get: () => others()[name] });
  return config;
}

/** What is read once: to compile a parser for it, as zod does, would take longer. */
function read<T>(schema: z.ZodMiniType<T>, value: unknown): T {
  const parsed = z.safeParse(schema, value, { jitless: true });
  if (parsed.success) return parsed.data;
  throw flaws(parsed.error);
}

function flaws(error: z.core.$ZodError): Error {
  return new Error(`the deployment's configuration: ${z.prettifyError(error)}`);
}
