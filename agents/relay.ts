import { type DelegatedArtifact, defineAgent, skill } from "sluice";
import * as z from "zod";

/** Of more or larger artifacts the text says that they are left where they are. */
const MAX_ARTIFACTS = 20;
const MAX_ARTIFACT_BYTES = 8 * 1024 * 1024;
/** What an artifact is labelled with when the other agent's label is none that we may give. */
const PLAIN = /^[\w.+-]{1,100}\/[\w.+-]{1,100}(;[^\p{Cc}]{0,50})?$/u;

const request = z.strictObject({
  /** The runtime that shall do the task. */
  to: z.string().min(1, "expected the runtime that shall do the task, such as acme-digest"),
  /** Its skill: a slug, or channelRef/slug for a runtime of another deployment. */
  skill: z.string().min(1).optional(),
  /** A text; anything else is handed on as data. */
  message: z.unknown().refine((message) => message !== undefined, "expected a message"),
});

/**
 * The names under which artifacts are given out: the ids that they have, of the characters that ids of ours have. Two
 * that are the same then are numbered.
 */
function namesOf(artifacts: readonly Pick<DelegatedArtifact, "id">[]): string[] {
  const taken = new Set<string>();
  for (const { id } of artifacts) {
    const plain =
      id
        .replace(/[^A-Za-z0-9_-]+/g, "-")
        .slice(0, 100)
        .replace(/^-+|-+$/g, "") || "artifact";
    let name = plain;
    for (let n = 2; taken.has(name); n++) name = `${plain}-${n}`;
    taken.add(name);
  }
  return [...taken];
}

/** `{ to, skill, message }` as data, or a text: the runtime, then the message. */
export const input = z.preprocess((given) => {
  if (typeof given !== "string") return given;
  const [, to, message] = /^\s*(\S*)\s*(.*)$/s.exec(given) ?? [];
  return { to, message };
}, request);

/** Why an artifact is not passed on. */
function kept({ name, sizeBytes }: DelegatedArtifact, index: number): string | undefined {
  if (index >= MAX_ARTIFACTS) return `${name} (more than ${MAX_ARTIFACTS} artifacts)`;
  return sizeBytes > MAX_ARTIFACT_BYTES ? `${name} (${sizeBytes} bytes)` : undefined;
}

export default defineAgent({
  id: "relay",
  description: "Hands a task on to another agent, and passes on what comes of it.",
  skills: {
    task: skill({
      name: "Relay",
      description:
        'Takes a runtime and a message, as text or as { "to": …, "skill": …, "message": … }; gives its text and artifacts.',
      tags: ["delegation"],
      input,
      async run(task, step) {
        const { to, skill: asked, message } = task.input;
        // A failure throws DelegationError, and a cancel of this task cancels the other. Nothing of it is our business.
        const { text, artifacts, metrics } = await step.delegate("hand on", {
          to,
          message: typeof message === "string" ? message : { data: message },
          ...(asked !== undefined && { skill: asked }),
          onStatus: (progress) => step.status(`${to}: ${progress}`),
        });

        const names = namesOf(artifacts.slice(0, MAX_ARTIFACTS));
        const left: string[] = [];
        for (const [index, artifact] of artifacts.entries()) {
          const why = kept(artifact, index);
          if (why !== undefined) {
            left.push(why);
            continue;
          }
          // Fetched in a step, for the other agent's object may be gone when this is run again.
          const base64 = await step.run(`fetch ${index + 1}`, async () =>
            Buffer.from(await artifact.bytes()).toString("base64"),
          );
          await step.artifact(names[index] ?? "artifact", {
            bytes: Buffer.from(base64, "base64"),
            mediaType: PLAIN.test(artifact.mediaType) ? artifact.mediaType : "application/octet-stream",
            filename: artifact.name.slice(0, 255),
          });
        }
        const note = left.length === 0 ? "" : `\n\nNot passed on: ${left.slice(0, MAX_ARTIFACTS).join(", ")}`;
        return { text: `${text}${note}`, metrics };
      },
    }),
  },
});
