import type { Part } from "../../wire/message.ts";
import { given, type Reading, readWith } from "../../wire/reading.ts";
import { isTerminal, type TaskState } from "../../wire/states.ts";
import * as z from "../../zod.ts";
import { isRemoteId } from "./ids.ts";
import {
  MAX_REMOTE_ARTIFACTS,
  MAX_REMOTE_DESCRIPTION,
  MAX_REMOTE_LABEL,
  MAX_REMOTE_PART_URL,
  MAX_REMOTE_PARTS,
} from "./limits.ts";
import type { ObservedData, Seen, SeenArtifact, SeenMessage } from "./types.ts";

/**
 * Reads what the SDK makes of an answer. It translates A2A 0.3 and 1.0 into one shape and checks nothing, so that all is
 * checked here; of what is unknown nothing is kept (A2A 1.0 §5.7).
 */

/** By their numbers (A2A 1.0 §4.1.3); 0 says that the agent does not know. */
const STATES: readonly (TaskState | undefined)[] = [
  undefined,
  "TASK_STATE_SUBMITTED",
  "TASK_STATE_WORKING",
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_REJECTED",
  "TASK_STATE_AUTH_REQUIRED",
];

/** Data parts that are values of extensions. */
const OBSERVED = /^application\/vnd\.protolabs\.[a-z0-9.-]{1,64}\+json$/;

const schemas = z.whenUsed(() => {
  const id = z.string().check(z.refine(isRemoteId, "expected an id"));
  const noId = z.pipe(
    z.optional(z.union([id, z.literal("")])),
    z.transform((of) => of || undefined),
  );
  const cut = (most: number) =>
    z.pipe(
      z.orElse(z.string(), undefined),
      z.transform((of) => of?.slice(0, most) || undefined),
    );
  const content = z.discriminatedUnion("$case", [
    z.object({ $case: z.literal("text"), value: z.string() }),
    z.object({ $case: z.literal("raw"), value: z.instanceof(Uint8Array) }),
    z.object({ $case: z.literal("url"), value: z.string().check(z.maxLength(MAX_REMOTE_PART_URL)) }),
    z.object({ $case: z.literal("data"), value: z.unknown() }),
  ]);
  const part = z.object({
    content: z.optional(content),
    metadata: z.orElse(z.object({ mimeType: z.optional(z.unknown()) }), undefined),
    filename: cut(MAX_REMOTE_LABEL),
    mediaType: cut(MAX_REMOTE_LABEL),
  });
  const parts = z.array(part).check(z.maxLength(MAX_REMOTE_PARTS));
  const message = z.object({ messageId: noId, contextId: noId, taskId: noId, parts });
  const state = z.pipe(
    z.int().check(z.gte(0), z.lt(STATES.length)),
    z.transform((of) => STATES[of]),
  );
  const status = z.object({ state, message: z.optional(message) });
  const artifact = z.object({
    artifactId: id,
    name: cut(MAX_REMOTE_LABEL),
    description: cut(MAX_REMOTE_DESCRIPTION),
    parts,
  });
  const task = z.object({
    id,
    contextId: noId,
    status: z.optional(status),
    artifacts: z.array(artifact).check(z.maxLength(MAX_REMOTE_ARTIFACTS)),
  });
  const event = z.discriminatedUnion("$case", [
    z.object({ $case: z.literal("task"), value: task }),
    z.object({ $case: z.literal("message"), value: message }),
    z.object({
      $case: z.literal("statusUpdate"),
      value: z.object({ taskId: id, contextId: noId, status }),
    }),
    z.object({
      $case: z.literal("artifactUpdate"),
      value: z.object({
        taskId: id,
        contextId: noId,
        artifact,
        append: z.boolean(),
        lastChunk: z.boolean(),
      }),
    }),
  ]);
  const listed = z.object({ id, contextId: noId, history: z.array(z.object({ messageId: z.unknown() })) });
  return {
    task,
    message,
    part,
    artifact,
    event: z.object({ payload: event }),
    page: z.object({ tasks: z.array(listed), nextPageToken: z.string().check(z.maxLength(4_096)) }),
  };
});

type Schemas = ReturnType<typeof schemas>;
type ReadTask = z.infer<Schemas["task"]>;
type ReadMessage = z.infer<Schemas["message"]>;
type ReadPart = z.infer<Schemas["part"]>;
type ReadArtifact = z.infer<Schemas["artifact"]>;

/** A task, as an answer of its own. */
export function readTask(value: unknown): Reading<Seen> {
  return mapped(readWith(schemas().task, value, "task"), ofTask);
}

/** What a message is answered with: a task, or a message in its place. */
export function readSent(value: unknown): Reading<Seen> {
  const isMessage = typeof value === "object" && value !== null && "messageId" in value;
  return isMessage ? mapped(readWith(schemas().message, value, "message"), ofMessage) : readTask(value);
}

/** An event of a stream. */
export function readEvent(value: unknown): Reading<Seen> {
  return mapped(readWith(schemas().event, value, "event"), ({ payload }) => {
    switch (payload.$case) {
      case "task":
        return ofTask(payload.value);
      case "message":
        return ofMessage(payload.value);
      case "statusUpdate": {
        const { taskId, contextId, status } = payload.value;
        return given({ kind: "status", taskId, contextId, ...ofStatus(status), artifacts: [] });
      }
      case "artifactUpdate": {
        const { taskId, contextId, artifact, append, lastChunk } = payload.value;
        const { artifacts, observed } = ofArtifacts([artifact], { append, last: lastChunk });
        return given({ kind: "artifact", taskId, contextId, artifacts, observed });
      }
    }
  });
}

/** A page of tasks with their histories. */
export interface TaskPage {
  readonly tasks: readonly {
    readonly id: string;
    readonly contextId?: string | undefined;
    /** The ids of the messages, those of the agent among them. */
    readonly history: readonly unknown[];
  }[];
  readonly nextPageToken: string;
}

/** A page of a list of tasks. */
export function readPage(value: unknown): Reading<TaskPage> {
  return mapped(readWith(schemas().page, value, "list"), ({ tasks, nextPageToken }) => ({
    tasks: tasks.map((of) => ({ ...of, history: of.history.map(({ messageId }) => messageId) })),
    nextPageToken,
  }));
}

function mapped<T, R>(read: Reading<T>, by: (value: T) => R): Reading<R> {
  return read.ok ? { ok: true, value: by(read.value) } : read;
}

function ofTask({ id, contextId, status, artifacts }: ReadTask): Seen {
  const said = ofStatus(status);
  const last = said.state !== undefined && isTerminal(said.state);
  const all = ofArtifacts(artifacts, { append: false, last });
  return given({
    kind: "task",
    taskId: id,
    contextId,
    ...said,
    artifacts: all.artifacts,
    observed: [...said.observed, ...all.observed],
  });
}

function ofMessage(read: ReadMessage): Seen {
  const { message, observed } = splitMessage(read);
  const { taskId, contextId } = read;
  return given({ kind: "message", taskId, contextId, message, text: message.text, artifacts: [], observed });
}

function ofStatus(status: ReadTask["status"]) {
  const said = status?.message && splitMessage(status.message);
  return {
    ...(status?.state && { state: status.state }),
    ...(said && { message: said.message, text: said.message.text }),
    observed: said?.observed ?? [],
  };
}

function splitMessage({ messageId, parts: all }: ReadMessage): {
  readonly message: SeenMessage;
  readonly observed: readonly ObservedData[];
} {
  const { parts, observed } = split(all);
  const text = parts.flatMap((of) => ("text" in of ? [of.text] : [])).join("\n");
  return { message: given({ messageId, text, parts }), observed };
}

function ofArtifacts(
  all: readonly ReadArtifact[],
  { append, last }: Pick<SeenArtifact, "append" | "last">,
): Pick<Seen, "artifacts" | "observed"> {
  const read = all.map(({ artifactId: id, name, description, parts: some }) => {
    const { parts, observed } = split(some);
    // An artifact of nothing but values of extensions is none that the agent has made.
    const isFrame = observed.length > 0 && parts.length === 0;
    return { artifacts: isFrame ? [] : [given({ id, name, description, parts, append, last })], observed };
  });
  return {
    artifacts: read.flatMap(({ artifacts }) => artifacts),
    observed: read.flatMap(({ observed }) => observed),
  };
}

function split(all: readonly ReadPart[]): {
  readonly parts: readonly Part[];
  readonly observed: readonly ObservedData[];
} {
  const parts: Part[] = [];
  const observed: ObservedData[] = [];
  for (const part of all) {
    const value = observedIn(part);
    const content = partOf(part);
    if (value !== undefined) observed.push(value);
    else if (content !== undefined) parts.push(content);
  }
  return { parts, observed };
}

function observedIn({ content, metadata }: ReadPart): ObservedData | undefined {
  if (content?.$case !== "data" || typeof metadata?.mimeType !== "string") return undefined;
  const mimeType = metadata.mimeType.toLowerCase();
  return OBSERVED.test(mimeType) ? { mimeType, data: content.value } : undefined;
}

/** Nothing of a part that has nothing we know. */
function partOf({ content, filename, mediaType }: ReadPart): Part | undefined {
  const fields = { filename, mediaType };
  switch (content?.$case) {
    case "text":
      return given({ text: content.value, ...fields });
    case "raw":
      return given({ raw: Buffer.from(content.value).toString("base64"), ...fields });
    case "url":
      return given({ url: content.value, ...fields });
    case "data":
      return given({ data: content.value, ...fields });
    case undefined:
      return undefined;
  }
}
