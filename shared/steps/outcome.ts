import type { Outcome } from "../agents/types.ts";
import { type EventDraft, wireEvent } from "../events/drafts.ts";
import type { Values } from "../tasks/values.ts";
import {
  type ArtifactRef,
  cutToFit,
  eventSize,
  jsonLength,
  MAX_EVENT_BYTES,
  type TaskRef,
} from "../wire/index.ts";
import { durable } from "./durable.ts";
import type { Engine } from "./engine.ts";
import { ArtifactError, NotJsonError } from "./errors.ts";
import { toJson } from "./json.ts";

/** Text artifacts up to this size stand in for a result's text when the handler gives none. */
const MAX_CONTENT_ARTIFACT_BYTES = 8 * 1024;
/** What one more artifact adds to a result at the most, and the trace header. */
const RESERVE_BYTES = 2_000;
/** The largest revision and the largest number of milliseconds have as many digits: sizes are measured with it. */
const LONGEST = Number.MAX_SAFE_INTEGER;

/** What a result says besides its state. */
export interface Content {
  readonly content: string;
  readonly artifacts: readonly ArtifactRef[];
  readonly metrics: Readonly<Record<string, number>>;
}

type Shape = Exclude<Outcome, string>;
const KEYS: ReadonlySet<string> = new Set(["text", "data", "artifacts", "metrics"]);

/** @throws NotJsonError when a handler returned something else than its type says */
function shapeOf(outcome: unknown): Shape {
  if (outcome === undefined || outcome === null) return {};
  if (typeof outcome === "string") return { text: outcome };
  const expected = "the handler's return value: expected a text or any of { text, data, artifacts, metrics }";
  if (typeof outcome !== "object") throw new NotJsonError(`${expected}, got a ${typeof outcome}`);
  const prototype: unknown = Object.getPrototypeOf(outcome);
  if (prototype !== Object.prototype && prototype !== null)
    throw new NotJsonError(`${expected}, got an object of class ${outcome.constructor?.name ?? "unknown"}`);
  const strange = Object.keys(outcome).find((key) => !KEYS.has(key));
  if (strange !== undefined) throw new NotJsonError(`${expected}, got the key ${JSON.stringify(strange)}`);
  const shape: Shape = outcome;
  if (shape.text !== undefined && typeof shape.text !== "string")
    throw new NotJsonError(`text of ${expected}, got a ${typeof shape.text}`);
  for (const [name, value] of Object.entries(shape.metrics ?? {}))
    if (typeof value !== "number" || !Number.isFinite(value))
      throw new NotJsonError(`metrics.${name} of the handler's return value: expected a finite number`);
  return shape;
}

/** What a requester reads who looks at no artifact: the small texts among them. */
async function textOfArtifacts(
  values: Values,
  taskId: string,
  artifacts: readonly ArtifactRef[],
): Promise<string> {
  const small = artifacts.filter(
    ({ mediaType, sizeBytes }) =>
      (mediaType.startsWith("text/") || mediaType === "application/json") &&
      sizeBytes <= MAX_CONTENT_ARTIFACT_BYTES,
  );
  const texts = await Promise.all(
    small.map(({ digest, sizeBytes }) =>
      values.get(values.ref(taskId, digest.replace("sha256:", ""), sizeBytes)),
    ),
  );
  return texts.map((bytes) => Buffer.from(bytes).toString("utf8")).join("\n\n");
}

function longest(of: Content): EventDraft {
  return {
    kind: "result",
    state: "TASK_STATE_COMPLETED",
    ...of,
    metrics: { ...of.metrics, elapsed_ms: LONGEST },
  };
}

/**
 * Makes a result's content of what a handler returned. Its artifacts are given out first; a text that does not fit
 * into an event is cut at a code point, and kept whole as an artifact (docs/wire.md, sizes).
 *
 * @throws NotJsonError, ArtifactError, StoreError
 */
export async function contentOf(
  outcome: unknown,
  { engine, values, task }: { engine: Engine; values: Values; task: TaskRef },
): Promise<Content> {
  const { text, data, artifacts = [], metrics = {} } = shapeOf(outcome);
  for (const { name, parts } of artifacts) await engine.step.artifact(name, parts);
  const json = data === undefined ? undefined : toJson(data, "data of the handler's return value");
  if (text !== undefined && json !== undefined)
    await engine.step.artifact("data", { text: json, mediaType: "application/json", filename: "data.json" });
  const own = text ?? json;
  const whole = own ?? (await durable(textOfArtifacts(values, task.taskId, engine.artifacts.all)));

  const bare = { content: "", artifacts: engine.artifacts.all, metrics };
  const empty = eventSize(wireEvent(task, longest(bare), LONGEST, 0));
  // The text stands in the event twice.
  const room = Math.floor((MAX_EVENT_BYTES - RESERVE_BYTES - empty) / 2);
  if (room < 0)
    throw new ArtifactError(
      `the result: expected ${engine.artifacts.all.length} artifacts and ${Object.keys(metrics).length} metrics to be described in ${MAX_EVENT_BYTES - RESERVE_BYTES} bytes, got ${empty}`,
    );
  if (jsonLength(whole) <= room) return { ...bare, content: whole };
  // What the artifacts say they hold whole themselves.
  if (own === undefined) return { ...bare, content: cutToFit(whole, room) };
  const isJson = text === undefined && json !== undefined;
  await engine.step.artifact("full-text", {
    text: whole,
    mediaType: isJson ? "application/json" : "text/plain",
    filename: isJson ? "result.json" : "result.txt",
  });
  return { content: cutToFit(whole, room), artifacts: engine.artifacts.all, metrics };
}
