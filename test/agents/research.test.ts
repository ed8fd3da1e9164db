import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type StartOptions, startTask } from "sluice/testing";
import research, { input, settings } from "../../agents/research.ts";
import { dieAtEachWrite } from "../support/kill-points.ts";

const LEASES = [
  "# Notes",
  "A lease lasts a minute.",
  "The worker renews its lease.",
  "Each epoch has a lease; its worker shows that it lives.",
  "Unrelated.",
].join("\n\n");
const OTHER = "The worker that lost its lease stops.\n\nA lease belongs to an epoch.";

const folder = mkdtempSync(join(tmpdir(), "sluice-research-"));
writeFileSync(join(folder, "a.md"), LEASES);
writeFileSync(join(folder, "b.txt"), OTHER);
const server = createServer((request, answer) => {
  if (request.url === "/never") return;
  if (request.url === "/page") answer.setHeader("content-type", "text/html").end(`<p>${OTHER}</p>`);
  else answer.writeHead(request.url === "/busy" ? 503 : 404).end();
});
let host = "";
before(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  host = `127.0.0.1:${address.port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

const start = (options: StartOptions) => startTask(research, options);

test("a text is looked through, the requester chooses, and the report grows chapter by chapter", async () => {
  const t = await start({ text: `What is a lease?\n${LEASES}` });
  await t.untilWaiting();
  assert.equal(t.events.at(-1)?.state, "TASK_STATE_INPUT_REQUIRED");
  const question =
    "There are 3 passages on “What is a lease?”. Which of these words shall they hold as well: worker (2), epoch (1), lasts (1), lives (1), minute (1)? Answer with one of them, or with “all”.";
  assert.equal(t.question?.prompt, question);

  await t.answer("everything");
  await t.untilWaiting();
  const refused = `expected one of all, worker, epoch, lasts, lives, minute`;
  assert.equal(t.question?.prompt, `That answer does not fit: ${refused}\n\n${question}`);

  await t.skip("2h");
  await t.answer(" Worker\n");
  const { state, text, artifacts, metrics } = await t.outcome();
  assert.equal(state, "TASK_STATE_COMPLETED");
  const parts = [
    "# What is a lease?, and there: worker\n\n- text 1: 3 passages; 131 bytes\n",
    "## text 1\n\n> The worker renews its lease.\n\n(line 5)\n\n> Each epoch has a lease; its worker shows that it lives.\n\n(line 7)\n",
  ];
  assert.equal(text, parts.join("\n"));
  assert.deepEqual(
    artifacts.map(({ name, mediaType, text }) => [name, mediaType, text]),
    [["report.md", "text/markdown", text]],
  );
  const sizes = t.events.flatMap(({ artifact }) => artifact?.sizeBytes ?? []);
  assert.deepEqual(
    sizes,
    [parts[0], text].map((text = "") => Buffer.byteLength(text)),
  );
  assert.deepEqual([metrics.sources, metrics.passages, metrics.bytes], [1, 2, 131]);
});

test("without an answer the report is about everything", async () => {
  const t = await start({ text: `lease\n${LEASES}` });
  await t.untilWaiting();
  await t.skip("1d");
  const { text } = await t.outcome();
  assert.match(text, /^# lease\n/);
  assert.match(text, /\(line 3\).*\(line 5\).*\(line 7\)/s);
});

test("texts, files and pages are read side by side, and what cannot be read is told", async () => {
  const urls = [`http://${host}/page`, `http://${host}/busy`, `http://${host}/none`];
  const sources = [{ text: LEASES, title: "Own" }, { file: "b.txt" }, ...urls.map((url) => ({ url }))];
  const t = await start({
    data: { topic: "lease", sources },
    settings: { folder, hosts: [host] },
    policy: { statusEverySec: 0 },
  });
  await t.answer("all");
  const { text, artifacts } = await t.outcome();
  assert.deepEqual(
    artifacts.map((artifact) => artifact.text),
    [text],
  );
  assert.match(
    text,
    new RegExp(
      [
        "- Own: 3 passages; 131 bytes",
        "- b.txt: 2 passages; 67 bytes",
        `- ${urls[0]}: 1 passages; 74 bytes`,
        `- ${urls[1]}: could not be read: ${host} answered 503`,
        `- ${urls[2]}: could not be read: ${host} answered 404`,
      ].join("\n"),
    ),
  );
  assert.equal(t.events.filter(({ kind }) => kind === "artifact").length, 4);
  const attempts = t.steps.flatMap(({ name, attempts }) =>
    name.endsWith("/read") ? [[name, attempts]] : [],
  );
  assert.deepEqual(
    attempts.sort(),
    [1, 2, 3, 4, 5].map((n) => [`source ${n}/read`, n === 4 ? 3 : 1]),
    "only what may pass is tried again",
  );
  const looked = t.events.find(({ content }) => /^looked at 5 of 5: /.test(content));
  assert.deepEqual(looked?.data, { lookedAt: 5, sources: 5 });
});

test("a long source is read up to the bound, one that never answers for its time", async () => {
  const sources = [{ text: LEASES }, { url: `http://${host}/never` }];
  const settings = { hosts: [host], maxBytes: 33, readWithinSec: 5 };
  const t = await start({ data: { topic: "lease", sources }, settings });
  await t.skip("10m");
  await t.answer("all");
  const { text } = await t.outcome();
  assert.match(text, /- text 1: 1 passages; only its first 33 bytes were read\n/);
  assert.match(
    text,
    /\/never: could not be read: step "source 2\/read": expected an attempt to take at most 5 s\n/,
  );
  assert.equal(t.steps.find(({ name }) => name === "source 2/read")?.attempts, 3);
});

test("a task that names no source is about the operator's texts", async () => {
  const t = await start({ text: "lease", settings: { folder } });
  await t.answer("epoch");
  const { text } = await t.outcome();
  assert.match(text, /- a\.md: 3 passages.*\n- b\.txt: 2 passages/);
  assert.match(text, /## b\.txt\n\n> A lease belongs to an epoch\.\n\n\(line 3\)\n$/);
});

test("nothing is asked where nothing can be chosen", async () => {
  const t = await start({ text: "zebra\nNo such animal." });
  const { state, text, artifacts } = await t.outcome();
  assert.equal(state, "TASK_STATE_COMPLETED");
  assert.equal(text, "# zebra\n\n- text 1: 0 passages; 15 bytes\n");
  assert.equal(artifacts.length, 1);
});

test("what is not allowed, or is not there, fails the task", async () => {
  const refused = async (options: StartOptions, message: RegExp) => {
    const { state, error } = await (await start(options)).outcome();
    assert.equal(state, "TASK_STATE_FAILED");
    assert.match(error?.message ?? "", message);
  };
  const of = (...sources: object[]) => ({ topic: "lease", sources });
  await refused({ text: "lease" }, /there is nothing to look in/);
  await refused({ text: "?\nText" }, /the topic has no word in it/);
  await refused({ text: " " }, /expected a topic/);
  await refused({ data: of({ file: "a.md" }) }, /files are not allowed/);
  await refused(
    { data: of({ url: "https://elsewhere.example/" }) },
    /pages of elsewhere\.example are not allowed/,
  );
  await refused(
    { data: of({ file: "none.md" }), settings: { folder } },
    /no source could be read\n# lease\n\n- none\.md: could not be read: there is no file none\.md/,
  );
});

test("what is asked for, and what the operator sets, at the bounds", () => {
  const asked = (of: object) => input.safeParse({ topic: "t", ...of }).success;
  assert.equal(asked({ sources: Array(32).fill({ text: "x" }) }), true);
  assert.equal(asked({ sources: Array(33).fill({ text: "x" }) }), false);
  assert.equal(asked({ topic: "x".repeat(200) }), true);
  assert.equal(asked({ topic: "x".repeat(201) }), false);
  assert.deepEqual(input.parse("\n topic \n\n\n"), { topic: "topic", sources: [] });
  assert.deepEqual(settings.parse({}), {
    hosts: [],
    maxBytes: 1_048_576,
    readWithinSec: 30,
    answerWithinSec: 86_400,
  });
  for (const right of [{ maxBytes: 8_388_608 }, { readWithinSec: 300 }, { answerWithinSec: 2_592_000 }])
    assert.equal(settings.safeParse(right).success, true, JSON.stringify(right));
  for (const wrong of [
    { maxBytes: 8_388_609 },
    { readWithinSec: 301 },
    { answerWithinSec: 2_592_001 },
    { folder: "texts" },
    { hosts: ["https://x.example"] },
  ])
    assert.equal(settings.safeParse(wrong).success, false, JSON.stringify(wrong));
});

for (const when of ["before", "after"] as const)
  test(`whichever write a process dies ${when}, the task ends with the same events`, async () => {
    const writes = await dieAtEachWrite({
      agent: research,
      start: { text: "lease", settings: { folder } },
      when,
      play: async (t) => {
        await t.answer("worker");
        const { artifacts, text } = await t.outcome();
        assert.deepEqual(
          artifacts.map((artifact) => artifact.text),
          [text],
        );
      },
      // How many progress texts are merged into one depends on the time, which a takeover takes.
      eventsOf: (events) =>
        events
          .filter(({ kind, state }) => kind !== "status" || state !== "TASK_STATE_WORKING")
          .map(({ kind, state, content, artifact }) => [
            kind,
            state,
            content,
            artifact?.key,
            artifact?.digest,
          ]),
    });
    assert.ok(writes > 20, `${writes} writes`);
  });
