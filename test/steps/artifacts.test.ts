import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import fc from "fast-check";
import { defineAgent, type Part, type Step, skill } from "sluice";
import { startTask } from "sluice/testing";
import * as z from "zod";
import {
  Artifacts,
  additionTo,
  encodeArtifact,
  grown,
  MAX_ARTIFACT_BYTES,
  MAX_ARTIFACTS,
  MAX_LABEL,
} from "../../shared/steps/artifacts.ts";
import { ArtifactError } from "../../shared/steps/errors.ts";
import { Crashes } from "../../testing/crashes.ts";
import { Simulation } from "../../testing/simulation.ts";
import { TestTask } from "../../testing/task.ts";
import { dieAtEachWrite } from "../support/kill-points.ts";

const TASK = "task_8463c7c504e9c3d38998774d";
const BINARY = "application/octet-stream";
const digestOf = (bytes: Uint8Array | string) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

const agentOf = (run: (step: Step) => Promise<unknown>) =>
  defineAgent({
    id: "reporter",
    description: "Reports as the test says",
    skills: {
      task: skill({
        name: "Task",
        description: "",
        input: z.unknown(),
        run: async (_, step) => JSON.stringify((await run(step)) ?? null),
      }),
    },
  });
const append = { append: true } as const;

/** What a handler comes to that gives out these, one after the other, under one name. */
async function given(chunks: readonly (string | Part | readonly Part[])[]) {
  const t = await startTask(
    agentOf(async (step) => {
      for (const chunk of chunks) await step.artifact("report", chunk, append);
    }),
    { text: "go" },
  );
  return { t, ...(await t.outcome()) };
}

/** What the handler is told that gives these out. */
async function refused(chunks: readonly (Part | readonly Part[])[], message: RegExp): Promise<void> {
  const { error } = await given(chunks);
  assert.equal(error?.code, "internal");
  assert.match(error?.message ?? "", message);
}

describe("an artifact that grows", () => {
  test("is one artifact, of which each call gives out a version under its own key", async () => {
    const { t, artifacts } = await given(["one\n", { text: "two\n" }, [{ text: "three" }, { text: "\n" }]]);
    assert.deepEqual(
      artifacts.map(({ id, name, mediaType, text }) => [id, name, mediaType, text]),
      [["report", "report.txt", "text/plain", "one\ntwo\nthree\n"]],
    );
    const versions = ["one\n", "one\ntwo\n", "one\ntwo\nthree\n"];
    const folder = `tasks/${t.id}/report`;
    const keys = [`${folder}/report.txt`, `${folder}/2/report.txt`, `${folder}/3/report.txt`];
    const events = t.events.filter(({ kind }) => kind === "artifact");
    assert.deepEqual(
      events.map(({ revision, messageId, artifact }) => [
        revision,
        messageId,
        artifact?.id,
        artifact?.key,
        artifact?.digest,
        artifact?.sizeBytes,
      ]),
      versions.map((text, index) => [
        index + 2,
        "report",
        "report",
        keys[index],
        digestOf(text),
        Buffer.byteLength(text),
      ]),
    );
    assert.deepEqual(t.events.at(-1)?.result?.artifacts, [events.at(-1)?.artifact]);
    assert.deepEqual(
      t.steps.map(({ name }) => name),
      ["report", "report#2", "report#3"],
    );
  });

  test("has the same bytes in the end however it is cut", async () => {
    const cut = fc.array(fc.uint8Array({ maxLength: 20 }), { minLength: 1, maxLength: 8 });
    const lists = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 8, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(cut, lists, async (pieces, sizes) => {
        const whole = Buffer.concat(pieces);
        const parts = pieces.map((bytes) => ({ bytes, mediaType: BINARY }));
        const chunks = [];
        while (parts.length > 0) chunks.push(parts.splice(0, sizes[chunks.length]));
        const { artifacts, t } = await given(chunks);
        assert.deepEqual(
          artifacts.map(({ bytes }) => Buffer.from(bytes)),
          [whole],
        );
        assert.equal(t.events.at(-1)?.result?.artifacts[0]?.digest, digestOf(whole));
      }),
      { numRuns: 30 },
    );
    const text = fc.array(fc.string({ unit: "grapheme" }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(text, async (pieces) => {
        const { artifacts } = await given(pieces);
        assert.deepEqual(
          artifacts.map((artifact) => artifact.text),
          [pieces.join("")],
        );
      }),
      { numRuns: 20 },
    );
  });

  test("keeps its name and its media type, which need not be said again", async () => {
    const first = { text: "# One\n", mediaType: "text/markdown", filename: "all.md" };
    const { artifacts } = await given([first, "more\n", { ...first, filename: "sub/all.md" }]);
    assert.deepEqual(
      artifacts.map(({ name, mediaType, text }) => [name, mediaType, text]),
      [["all.md", "text/markdown", "# One\nmore\n# One\n"]],
    );
    await refused(
      [first, { text: "x", mediaType: "text/plain" }],
      /artifact "report": mediaType: expected "text\/markdown" as before, or none, got "text\/plain"/,
    );
    await refused(
      [[first, { bytes: Buffer.from("x"), mediaType: BINARY }]],
      /mediaType: expected "text\/markdown" as before/,
    );
    await refused(
      [first, { text: "x", filename: "other.md" }],
      /filename: expected "all.md" as before, or none, got "other.md"/,
    );
    const nameless = { text: "x", filename: "a/" };
    assert.equal((await given([nameless, nameless])).artifacts[0]?.name, "report");
    await refused([{ data: [1] }], /expected text or bytes to append, got data/);
    await refused([[]], /expected a part, got none/);
  });

  test("may be begun without append, and a refused part leaves it as it was", async () => {
    const t = await startTask(
      agentOf(async (step) => {
        await step.artifact("report", "one");
        const wrong = step.artifact("report", { bytes: Buffer.from("x"), mediaType: BINARY }, append);
        const name = await wrong.catch((error: Error) => error.name);
        await step.artifact("report", ", two", append);
        return name;
      }),
      { text: "go" },
    );
    const { text, artifacts } = await t.outcome();
    assert.equal(text, '"ArtifactError"');
    assert.deepEqual(
      artifacts.map((artifact) => artifact.text),
      ["one, two"],
    );
  });

  test("is the branch's own, and nobody else adds to it", async () => {
    const t = await startTask(
      agentOf(async (step) => {
        await step.each(
          ["a", "b"],
          (key) => key,
          async (key, step) => {
            for (const n of [1, 2]) await step.artifact("log", `${key}${n}`, append);
          },
        );
        await step.artifact("a b", "mine", append);
        const other = step.artifact("a-b", "yours", append);
        return await other.catch((error: Error) => error.message);
      }),
      { text: "go" },
    );
    const { text, artifacts } = await t.outcome();
    assert.match(text, /artifact \\"a-b\\": expected an id that no other artifact has/);
    const all = artifacts.map((artifact) => [artifact.id, artifact.text]);
    assert.deepEqual(all.sort(), [
      ["a-b", "mine"],
      ["a-log", "a1a2"],
      ["b-log", "b1b2"],
    ]);
  });

  test("without append a second one of the same id is refused, as ever", async () => {
    const t = await startTask(
      agentOf(async (step) => {
        await step.artifact("a b", "one", append);
        await step.artifact("a-b", "two");
      }),
      { text: "go" },
    );
    assert.match(
      (await t.outcome()).error?.message ?? "",
      /ArtifactError: artifact "a-b": expected an id that no other artifact has/,
    );
  });

  test("is read again only when something is added", async () => {
    const agent = agentOf(async (step) => {
      for (const chunk of ["one", "two"]) await step.artifact("report", chunk, append);
      await step.sleep("rest", "1h");
      await step.run("think", () => null);
      await step.sleep("rest again", "1h");
      await step.artifact("report", "three", append);
    });
    const simulation = new Simulation(agent, {});
    const reads: string[] = [];
    const { get } = simulation.values;
    simulation.values.get = (ref) => {
      reads.push(ref.key);
      return get(ref);
    };
    const { taskId } = await simulation.admit({ skill: "task", a2a: "go", from: "local-cli" });
    const t = new TestTask({ id: taskId, from: "local-cli", simulation, crashes: new Crashes() });
    const { artifacts } = await t.outcome();
    assert.equal(artifacts[0]?.text, "onetwothree");
    const key = (text: string) => `values/${taskId}/${digestOf(text).replace("sha256:", "")}`;
    // Each is read to be published, and the first and the second to be added to; two takeovers read nothing.
    assert.deepEqual(reads.sort(), ["one", "one", "onetwo", "onetwo", "onetwothree"].map(key).sort());
  });

  for (const when of ["before", "after"] as const)
    test(`has the same versions and events whichever write a process dies ${when}`, async () => {
      const writes = await dieAtEachWrite({
        agent: agentOf(async (step) => {
          for (const n of [1, 2, 3]) {
            await step.artifact("report", `chapter ${n}\n`, append);
            if (n === 2) await step.sleep("rest", "1h");
          }
        }),
        start: { text: "go" },
        when,
        play: async (t) => {
          const { artifacts } = await t.outcome();
          assert.deepEqual(
            artifacts.map(({ text }) => text),
            ["chapter 1\nchapter 2\nchapter 3\n"],
          );
        },
        eventsOf: (events) =>
          events.map(({ kind, revision, artifact, result }) => [kind, revision, artifact, result?.artifacts]),
      });
      assert.ok(writes > 10, `${writes} writes`);
    });
});

describe("the bounds of artifacts", () => {
  const part = (bytes: number) => ({ bytes: Buffer.alloc(bytes), mediaType: BINARY });

  test("the size is that of the whole", () => {
    const former = encodeArtifact(TASK, "big", part(MAX_ARTIFACT_BYTES - 3));
    const addition = additionTo("big", part(3), { version: 2, former: former.ref });
    const whole = grown(TASK, addition, former.bytes);
    assert.equal(whole.ref.sizeBytes, MAX_ARTIFACT_BYTES);
    assert.equal(whole.ref.digest, digestOf(whole.bytes));
    for (const parts of [part(4), [part(2), part(2)]])
      assert.throws(
        () => additionTo("big", parts, { version: 2, former: former.ref }),
        (error) =>
          error instanceof ArtifactError &&
          error.message.endsWith(
            `expected at most ${MAX_ARTIFACT_BYTES} bytes, got ${MAX_ARTIFACT_BYTES + 1}`,
          ),
      );
    assert.throws(() => additionTo("big", part(MAX_ARTIFACT_BYTES + 1), { version: 1 }), ArtifactError);
  });

  test("a file name has a length", () => {
    const named = (length: number) =>
      additionTo("a", { text: "x", filename: "n".repeat(length) }, { version: 1 });
    assert.equal(named(MAX_LABEL).label.name.length, MAX_LABEL);
    assert.throws(() => named(MAX_LABEL + 1), /filename: expected at most 255 characters, got 256/);
  });

  test("a task has so many artifacts, and each as many versions as it likes", () => {
    const artifacts = new Artifacts();
    const ref = (id: string) => encodeArtifact(TASK, id, "x").ref;
    for (let n = 1; n <= MAX_ARTIFACTS; n++) artifacts.give(ref(`a${n}`), `a${n}`);
    artifacts.give(ref("a1"), "a1");
    assert.equal(artifacts.all.length, MAX_ARTIFACTS);
    assert.throws(() => artifacts.begin("one-more", "one-more"), /expected at most 500 in a task/);
  });

  test("what is only begun is not listed", () => {
    const artifacts = new Artifacts();
    artifacts.begin("report", "report");
    assert.deepEqual([artifacts.all, artifacts.of("report")], [[], undefined]);
    assert.throws(() => artifacts.begin("report", "report"), ArtifactError);
  });
});
