import type { Part } from "../../agents/types.ts";
import { encodeArtifact } from "../artifacts.ts";
import { durable } from "../durable.ts";
import type { Done, Engine } from "../engine.ts";
import { toJson } from "../json.ts";

/** Keeps the bytes, then puts the step together with the event that gives them out. */
export async function artifactStep(
  engine: Engine,
  id: string,
  parts: string | Part | readonly Part[],
): Promise<Done> {
  await engine.begin(id);
  const started = engine.clock.now();
  const { ref, bytes } = encodeArtifact(engine.taskId, id, parts);
  engine.artifacts.add(ref);
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
  return { at, value: ref };
}
