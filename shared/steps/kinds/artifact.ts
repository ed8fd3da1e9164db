import type { ArtifactOptions } from "../../agents/types.ts";
import { additionTo, type Encoded, encodeArtifact, grown, type Parts } from "../artifacts.ts";
import { durable } from "../durable.ts";
import type { Done, Engine } from "../engine.ts";
import { toJson } from "../json.ts";
import { useOf } from "../names.ts";

/** A call of `step.artifact`: which step it is, and the name that it shares with others. */
interface Call {
  readonly id: string;
  readonly path: string;
}

/** Keeps the bytes, then puts the step together with the event that gives them out. */
export async function artifactStep(
  engine: Engine,
  { id, path }: Call,
  parts: Parts,
  { append = false }: ArtifactOptions = {},
): Promise<Done> {
  await engine.begin(id);
  const started = engine.clock.now();
  const { ref, bytes } = append
    ? await appended(engine, { id, path }, parts)
    : begun(engine, { id, path }, parts);
  const value = await durable(engine.values.put(engine.taskId, bytes));
  const text = toJson(ref, "artifact");
  const at = await durable(
    engine.writer.add({
      step: {
        name: id,
        kind: "artifact",
        value: { text },
        ms: Math.max(0, Math.round(engine.clock.now() - started)),
      },
      events: [{ kind: "artifact", artifact: ref, value }],
    }),
  );
  engine.artifacts.give(ref, path);
  return { at, value: ref };
}

function begun(engine: Engine, { id, path }: Call, parts: Parts): Encoded {
  const made = encodeArtifact(engine.taskId, id, parts);
  engine.artifacts.begin(made.ref.id, path);
  return made;
}

/** What there was is in the bucket, under its digest; it is read only where something is added to it. */
async function appended(engine: Engine, { id, path }: Call, parts: Parts): Promise<Encoded> {
  const { taskId, artifacts, values } = engine;
  const former = artifacts.of(path);
  const addition = additionTo(path, parts, { version: useOf(id, path), former });
  if (former === undefined) {
    artifacts.begin(addition.label.id, path);
    return grown(taskId, addition, new Uint8Array());
  }
  const ref = values.ref(taskId, former.digest.replace("sha256:", ""), former.sizeBytes);
  return grown(taskId, addition, await durable(values.get(ref)));
}
