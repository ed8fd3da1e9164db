import type { RemoteCard } from "../remotes/card.ts";
import { BY_SKILL, type HitlEntry } from "../remotes/extensions.ts";
import { BLAST_RADII, HITL_MODES } from "../remotes/hitl/scales.ts";
import * as z from "../zod.ts";
import {
  EXTENDED_TEXTS,
  type HttpFacts,
  type HttpLedger,
  type NatsFacts,
  type NatsLedger,
} from "./peer-facts.ts";

/** What is kept of peers as it is read again: it was stored by us, and is judged by its shape alone. */

const text = () => z.string();
const texts = () => z.array(text());
const skills = () => z.array(z.object({ id: text(), name: text(), description: text(), tags: texts() }));
const time = () => z.number();

export const natsFacts = z.whenUsed(
  (): z.ZodMiniType<NatsFacts> =>
    z.object({
      transport: z.literal("nats"),
      id: text(),
      instanceId: text(),
      description: text(),
      version: text(),
      skills: skills(),
      interfaces: z.array(z.object({ url: text(), protocolBinding: text(), protocolVersion: text() })),
      capabilities: texts(),
      extended: z.object({
        ...Object.fromEntries(EXTENDED_TEXTS.map((name) => [name, z.optional(text())])),
        result_visibility_support: z.optional(texts()),
      }),
      firstSeen: time(),
    }),
);

const note = () => z.optional(text());
const hitl = (): z.ZodMiniType<HitlEntry> =>
  z.object({
    skill: text(),
    mode: z.enum(HITL_MODES),
    vetoTtlMs: z.optional(time()),
    reviewer: z.optional(text()),
    note: note(),
  });
const card = (): z.ZodMiniType<RemoteCard> =>
  z.object({
    protocol: z.enum(["0.3", "1.0"]),
    name: text(),
    description: text(),
    version: text(),
    skills: skills(),
    interfaces: z.array(
      z.object({ url: text(), protocolBinding: text(), protocolVersion: text(), tenant: z.optional(text()) }),
    ),
    capabilities: z.object({
      streaming: z.boolean(),
      pushNotifications: z.boolean(),
      extendedAgentCard: z.boolean(),
    }),
    extensions: z.object({
      uris: texts(),
      required: texts(),
      hitl: z.array(hitl()),
      blast: z.array(
        z.object({
          skill: text(),
          radius: z.enum(BLAST_RADII),
          note: note(),
        }),
      ),
      unread: z.optional(z.array(z.enum(BY_SKILL))),
      cost: z.boolean(),
      confidence: z.boolean(),
      toolCall: z.boolean(),
      worldstateDelta: z.boolean(),
      trace: z.boolean(),
    }),
    securitySchemes: z.array(
      z.object({
        name: text(),
        kind: z.enum(["apiKey", "http", "oauth2", "openIdConnect", "mtls", "unknown"]),
        detail: z.optional(text()),
      }),
    ),
  });

export const httpFacts = z.whenUsed(
  (): z.ZodMiniType<HttpFacts> =>
    z.object({
      transport: z.literal("http"),
      id: text(),
      url: text(),
      path: text(),
      etag: z.optional(text()),
      card: card(),
      notes: texts(),
      signature: z.object({
        state: z.enum(["unsigned", "valid", "unverified"]),
        key: z.optional(text()),
        kid: z.optional(text()),
      }),
      firstSeen: time(),
    }),
);

export const natsLedger = z.whenUsed(
  (): z.ZodMiniType<NatsLedger> =>
    z.object({
      lookedAt: time(),
      sightings: z.array(
        z.object({ id: text(), seen: time(), expiresAt: time(), gone: z.optional(z.boolean()) }),
      ),
      amiss: z.array(z.object({ key: text(), reason: text(), since: time() })),
    }),
);

export const httpLedger = z.whenUsed(
  (): z.ZodMiniType<HttpLedger> =>
    z.object({
      standings: z.array(
        z.object({
          id: text(),
          seen: z.optional(time()),
          freshUntil: z.optional(time()),
          failures: z.int(),
          failingSince: z.optional(time()),
          reason: z.optional(text()),
          offeredKey: z.optional(text()),
          probe: z.optional(
            z.object({
              at: time(),
              reachable: z.boolean(),
              latencyMs: z.number(),
              error: z.optional(text()),
            }),
          ),
        }),
      ),
    }),
);
