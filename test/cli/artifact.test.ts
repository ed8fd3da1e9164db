import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import * as z from "zod";
import { putObject } from "../../shared/nats/objects.ts";
import { acceptedEvent, artifactEvent, artifactRef, resultEvent } from "../../shared/wire/index.ts";
import { now, openStage, type Stage } from "./peer.ts";
import { run } from "./run.ts";

let stage: Stage;
let cwd: string;

before(async () => {
  stage = await openStage();
  cwd = mkdtempSync(join(tmpdir(), "sluice-cli-"));
  writeFileSync(join(cwd, "agents.yaml"), "deployment: acme\nagents: { digest: {} }\n");
});
after(async () => {
  await stage[Symbol.asyncDispose]();
  rmSync(cwd, { recursive: true, force: true });
});

const sluice = (...args: string[]) => run([...args, "--nats", stage.nats.url], { cwd });

/** A task that has given out these texts, by names; gives its id. */
async function giving(artifacts: readonly (readonly [name: string, text: string])[], stored = true) {
  let taskId = "";
  stage.script = async ({ task }, say) => {
    taskId = task.taskId;
    await say(acceptedEvent(task, now()));
    let revision = 1;
    for (const [name, text] of artifacts) {
      const bytes = Buffer.from(text);
      const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
      const mediaType = "text/plain";
      const of = { id: `artifact-${revision}`, name, mediaType, digest, sizeBytes: bytes.length };
      const artifact = artifactRef(task.taskId, of);
      if (stored) await putObject(stage.nc, { key: artifact.key, mediaType, digest, bytes });
      await say(artifactEvent(task, { revision: ++revision, artifact }, now()));
    }
    const end = { revision: revision + 1, state: "TASK_STATE_COMPLETED", metrics: {} } as const;
    await say(resultEvent(task, end, now()));
  };
  assert.equal((await sluice("ask", "digest", "x")).code, 0);
  return taskId;
}

test("an artifact's bytes go to stdout as they are, or into a file", async () => {
  const text = "one\n\u001b[31mtwo\u0000";
  const task = await giving([["a.txt", text]]);
  const shown = await sluice("artifact", task);
  assert.deepEqual([shown.code, shown.stdout], [0, text]);
  const path = join(cwd, "out.txt");
  assert.equal((await sluice("artifact", task, "a.txt", "--out", path)).code, 0);
  assert.equal(readFileSync(path, "utf8"), text);
  const [ref] = (await sluice("artifact", task, "--json")).json();
  assert.equal(z.looseObject({ name: z.string() }).parse(ref).name, "a.txt");
  const nowhere = await sluice("artifact", task, "--out", join(cwd, "none/out.txt"));
  assert.equal(nowhere.code, 2);
  assert.match(nowhere.stderr, /--out .*: cannot be written/);
});

test("of several artifacts one must be named, by its name or its id", async () => {
  const task = await giving([
    ["a.txt", "first"],
    ["a.txt", "second"],
    ["b.txt", "third"],
  ]);
  assert.equal((await sluice("artifact", task, "b.txt")).stdout, "third");
  assert.equal((await sluice("artifact", task, "artifact-2")).stdout, "second");
  for (const [name, words] of [
    [[], /several artifacts may be meant, name one by its id; it has a.txt \(artifact-1\), .*b.txt/],
    [["a.txt"], /several artifacts .* it has a.txt \(artifact-1\), a.txt \(artifact-2\)$/m],
    [["c.txt"], /no artifact "c.txt"; it has a.txt/],
  ] as const) {
    const { code, stderr } = await sluice("artifact", task, ...name);
    assert.equal(code, 1);
    assert.match(stderr, words);
  }
  const { stdout } = await sluice("status", task);
  assert.match(stdout, new RegExp(`^  read one with ./sluice artifact ${task} NAME$`, "m"));
});

test("an artifact that is not there, and a task that has none", async () => {
  const lost = await sluice("artifact", await giving([["a.txt", "gone"]], false));
  assert.equal(lost.code, 1);
  assert.match(lost.stderr, /^sluice: artifact "a.txt": a2a-artifacts holds no object/);
  const none = await sluice("artifact", await giving([]));
  assert.equal(none.code, 1);
  assert.match(none.stderr, /no artifact; it has none$/m);
});
