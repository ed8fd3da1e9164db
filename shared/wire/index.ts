/** The wire as Sluice speaks it: schemas and pure functions, no I/O (docs/wire.md). */
export { type ArtifactRef, artifactRef, readableArtifactRef, safeName } from "./artifacts.ts";
export { ASKS_OPERATOR, asksOperator } from "./asking.ts";
export { type Control, controlMessage, readControl } from "./control.ts";
export {
  BINDING,
  type Envelope,
  type Enveloped,
  readEnvelope,
  readTimelessEnvelope,
  VERSION,
} from "./envelope.ts";
export {
  acceptedEvent,
  artifactEvent,
  rejectedEvent,
  resultEvent,
  statusEvent,
  type TaskRef,
  type WireEvent,
} from "./events.ts";
export {
  agentId,
  artifactId,
  blankedIn,
  messageId,
  runtimeAgentId,
  runtimeAlias,
  taskId,
  taskIdOf,
} from "./ids.ts";
export { jsonDepth } from "./json.ts";
export { type Message, type Part, readMessage } from "./message.ts";
export { type MsgIdParts, msgIdOf } from "./msg-ids.ts";
export { type EventError, readEvent, type TaskEvent } from "./read-event.ts";
export type { Reading } from "./reading.ts";
export { cutToFit, eventSize, jsonLength, MAX_EVENT_BYTES } from "./sizes.ts";
export {
  type ErrorCode,
  errorCode,
  isTerminal,
  type TaskState,
  taskState,
  type WireError,
} from "./states.ts";
export {
  type CardSubject,
  type ControlKind,
  type ControlSubject,
  controlSubject,
  type EventKind,
  type EventSubject,
  eventSubject,
  type HeartbeatSubject,
  parseSubject,
  type Subject,
  type TaskSubject,
  taskOfSubject,
  taskSubject,
} from "./subjects.ts";
export {
  type Delivery,
  type DiscordContext,
  type OriginRequester,
  type OriginRuntimeRef,
  type Outgoing,
  readTaskPayload,
  skillSlug,
  type TaskReading,
  type TaskRequest,
  taskMessage,
} from "./task.ts";
