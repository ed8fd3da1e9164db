import type { Part as SdkPart, SendMessageRequest } from "@a2a-js/sdk";
import type { Part } from "../../wire/message.ts";
import type { CardExtensions } from "../extensions.ts";
import { declaredOf } from "../hitl/mode.ts";
import type { ExchangeTrace, Held, Outgoing, Reply } from "./types.ts";

/** `ROLE_USER` (A2A 1.0 §4.1.5). */
const USER = 1;

/** What goes along with a message besides its parts: facts of ours alone, and nothing that a requester has written. */
export interface Stamp {
  readonly trace: ExchangeTrace;
  readonly extensions: CardExtensions | undefined;
}

/**
 * The request that sends a message. It asks for an answer at once (`returnImmediately`), whatever the agent then does.
 * The skill is told in the message's metadata and in the request's, for agents look in either place.
 */
export function sendRequest(of: Outgoing | Reply, stamp: Stamp): SendMessageRequest {
  const metadata = metadataOf(of, stamp);
  return {
    tenant: "",
    message: {
      messageId: of.messageId,
      contextId: of.contextId,
      taskId: "taskId" in of ? of.taskId : "",
      role: USER,
      parts: of.parts.map(sdkPart),
      metadata: { skillHint: of.skill, "a2a.trace": metadata["a2a.trace"] },
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: {
      acceptedOutputModes: [...(of.accepts ?? [])],
      taskPushNotificationConfig: undefined,
      historyLength: 0,
      returnImmediately: true,
    },
    metadata,
  };
}

/** Where the work belongs, as agents read it that know the extension `trace-v1`; the others may ignore it. */
export function traceOf({ correlationId, traceparent, caller, hops }: ExchangeTrace, skill?: string) {
  // The third field of W3C Trace Context is whose child this is.
  const spanId = /^[0-9a-f]{2}-[0-9a-f]{32}-([0-9a-f]{16})-/.exec(traceparent ?? "")?.[1];
  return {
    traceId: correlationId,
    ...(spanId && { spanId }),
    callerAgent: caller,
    ...(skill && { skill }),
    hops,
  };
}

function metadataOf({ skill, held }: Outgoing, { trace, extensions }: Stamp) {
  const { correlationId, parentId } = trace;
  return {
    skillHint: skill,
    correlationId,
    ...(parentId && { parentId }),
    ...heldAs(held ?? declaredOf(skill, extensions)),
    ...(extensions?.cost && { "x-cost-skill": skill }),
    ...(extensions?.confidence && { "x-confidence-skill": skill }),
    ...(extensions?.worldstateDelta && { "x-effect-domain-skill": skill }),
    "a2a.trace": traceOf(trace, skill),
  };
}

function heldAs({ mode, vetoTtlMs, radius }: Partial<Held>) {
  return {
    ...(radius && { "x-blast-radius": radius }),
    ...(mode && { "x-hitl-mode": mode }),
    ...(vetoTtlMs && { "x-hitl-veto-ttl-ms": vetoTtlMs }),
  };
}

function sdkPart(part: Part): SdkPart {
  const mimeType = part.metadata?.mimeType;
  return {
    content: contentOf(part),
    metadata: typeof mimeType === "string" ? { mimeType } : undefined,
    filename: part.filename ?? "",
    mediaType: part.mediaType ?? "",
  };
}

function contentOf(part: Part): NonNullable<SdkPart["content"]> {
  if ("text" in part) return { $case: "text", value: part.text };
  if ("raw" in part) return { $case: "raw", value: Buffer.from(part.raw, "base64") };
  if ("url" in part) return { $case: "url", value: part.url };
  return { $case: "data", value: part.data };
}
