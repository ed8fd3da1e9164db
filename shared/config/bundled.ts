import { BLAST_RADII, HITL_MODES } from "../remotes/hitl/scales.ts";
import { given } from "../wire/reading.ts";
import * as z from "../zod.ts";
import type { DeploymentConfig } from "./deployment.ts";
import { CREDENTIALS, DEPLOYMENT_NAME, RUNTIME_ID, RUNTIME_OR_ANYONE, SERVER_URL, SLUG } from "./forms.ts";
import {
  HEADER_NAME,
  HEADER_VALUE,
  REMOTE_CREDENTIALS,
  REMOTE_NAME,
  REMOTE_URL,
  SKILL_NAME,
} from "./remote-forms.ts";

/**
 * A deployment as bundles carry it, in the module `sluice:deployment`: read at synth (deployment.ts), nothing left out.
 * Functions see at their start that it is what they were written for; how much of each thing there may be was judged
 * before, and is not judged again.
 */

const text = z.string();
const texts = z.array(text);
const int = z.int();
const flag = z.boolean();
const slug = text.check(SLUG);
const runtimeOrAnyone = text.check(RUNTIME_OR_ANYONE);

/** A policy with all its fields. */
export const bundledPolicy = z.whenUsed(() =>
  z.strictObject({
    enabled: flag,
    acceptFromRuntimes: z.array(runtimeOrAnyone),
    acceptSkills: z.array(slug),
    resultVisibility: z.enum(["any", "proxy", "transparent"]),
    timeoutSec: z.strictObject({ default: int, max: int }),
    maxDelegationDepth: int,
    maxConcurrent: int,
    maxQueued: int,
    quotas: z.strictObject({ open: int, openPerPeer: int }),
    statusEverySec: z.number(),
    eventsPerMin: int,
    discoverable: flag,
    exposeSkills: z.array(
      z.strictObject({ id: slug, inputModes: z.optional(texts), outputModes: z.optional(texts) }),
    ),
    delegateTargets: z.array(z.strictObject({ runtimeAgentId: runtimeOrAnyone, skillId: text })),
    delegateMedia: z.strictObject({ allowedMimeTypes: texts, maxBytes: int, allowObjectRefs: flag }),
    allowMemoryWrite: flag,
  }),
);

const hosted = z.whenUsed(
  (): z.ZodMiniType<Pick<DeploymentConfig, "agents">> =>
    z.strictObject({
      agents: z.array(
        z.strictObject({
          id: text,
          runtime: text.check(RUNTIME_ID),
          channelRef: slug,
          displayName: text,
          description: text,
          version: text,
          skills: z.array(z.strictObject({ slug, name: text, description: text, tags: texts })),
          remote: z.optional(text),
          policy: bundledPolicy(),
          settings: z.unknown(),
        }),
      ),
    }),
);

const hitl = () => ({ mode: z.optional(z.enum(HITL_MODES)), radius: z.optional(z.enum(BLAST_RADII)) });

/** Of others: built for deployments alone that have any. */
const othersOf = z.whenUsed(
  (): z.ZodMiniType<Pick<DeploymentConfig, "remotes" | "outbound" | "choosing">> =>
    z.strictObject({
      remotes: z.optional(
        z.array(
          z.strictObject({
            name: text.check(REMOTE_NAME),
            url: text.check(...REMOTE_URL),
            auth: z.optional(
              z.strictObject({
                scheme: z.enum(["apiKey", "bearer", "hmac"]),
                credentials: text.check(REMOTE_CREDENTIALS),
              }),
            ),
            headers: z.record(text.check(...HEADER_NAME), text.check(HEADER_VALUE)),
            streaming: z.boolean(),
            external: z.boolean(),
            skills: z.array(
              z.strictObject({
                name: text.check(SKILL_NAME),
                description: z.optional(text),
                hitl: z.optional(z.strictObject(hitl())),
              }),
            ),
            hitl: z.optional(z.strictObject({ ...hitl(), approvalSec: z.optional(z.int()) })),
            subscribesTo: z.array(text),
          }),
        ),
      ),
      outbound: z.optional(z.strictObject({ allow: z.array(text) })),
      choosing: z.optional(z.strictObject({ default: z.optional(text), cooldownSec: z.record(slug, int) })),
    }),
);

const deployment = z.strictObject({
  deployment: text.check(DEPLOYMENT_NAME),
  nats: z.strictObject({
    servers: z.array(text.check(...SERVER_URL)),
    credentials: text.check(CREDENTIALS),
    ca: z.optional(text),
  }),
  agents: z.unknown(),
  discovery: z.optional(z.looseObject({ discordGuildId: z.optional(text) })),
  remotes: z.optional(z.unknown()),
  outbound: z.optional(z.unknown()),
  choosing: z.optional(z.unknown()),
});

/**
 * Reads what a bundle carries: where NATS is at once, and the agents when they are first asked for, so that a start does
 * not wait for them.
 *
 * @throws Error that names each field that is not as expected; of an agent's, when `agents` is read
 */
export function readBundled(value: unknown): DeploymentConfig {
  const { agents, remotes, outbound, choosing, ...rest } = read(deployment, value);
  const readAgents = z.whenUsed(() => read(hosted(), { agents }).agents);
  const others = remotes ?? outbound ?? choosing;
  return {
    ...rest,
    get agents() {
      return readAgents();
    },
    ...(others !== undefined && read(othersOf(), given({ remotes, outbound, choosing }))),
  };
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
