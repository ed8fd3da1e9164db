import { defineAgent, FatalError, ReplyTimeout, type Step, skill, type Task } from "sluice";
import * as z from "zod";
import { type Findings, mostFrequentOf, type Passage, scoreOf, search, termsOf } from "./parts/passages.ts";
import { check, filesBelow, MAX_SOURCES, read, type Source, source } from "./parts/sources.ts";

const CONCURRENCY = 4;
/** How many words the requester may choose from. */
const MAX_CHOICES = 5;
/** How many passages of one source stand in the report. */
const MAX_QUOTED = 5;
const EVERYTHING = "all";

export const settings = z.strictObject({
  /** Below this folder a task may name files; without one it may not. A path on the machine that runs the functions. */
  folder: z.string().startsWith("/", "expected an absolute path").optional(),
  /** Hosts whose pages a task may name, as in a URL: `docs.example`, `docs.example:8443`. */
  hosts: z.array(z.string().regex(/^[^\s/@]+$/, "expected a host, with a port if need be")).default([]),
  /** How much of a source is read. */
  maxBytes: z.int().min(1).max(8_388_608).default(1_048_576),
  /** How long one attempt to read a source may take. */
  readWithinSec: z.number().positive().max(300).default(30),
  /** How long the requester has to answer; after that the report is about everything. */
  answerWithinSec: z.int().min(1).max(2_592_000).default(86_400),
});
type Settings = z.output<typeof settings>;

const request = z.strictObject({
  topic: z.string().trim().min(1, "expected a topic").max(200),
  sources: z.array(source).max(MAX_SOURCES).default([]),
});

/** `{ topic, sources }` as data, or a text: the topic in its first line, and below it a text to look in. */
export const input = z.preprocess((given) => {
  if (typeof given !== "string") return given;
  const [topic, ...rest] = given.trimStart().split(/\r\n|\n|\r/);
  const text = rest.join("\n");
  return { topic, sources: text.trim() === "" ? [] : [{ text }] };
}, request);
type Input = z.output<typeof input>;

/** A source of the plan: a text stays in the task, which is stored already; the plan only says which one it is. */
type Planned = { readonly key: string; readonly title: string } & (
  | { readonly text: number }
  | Exclude<Source, { text: string }>
);

/** What came of a source. */
type Looked =
  | { readonly title: string; readonly bytes: number; readonly cut: boolean; readonly found: Findings }
  | { readonly title: string; readonly failed: string };

/** What to read: what the task names, or else every text below the folder. */
async function plan(
  { topic, sources }: Input,
  allowed: Settings,
): Promise<{ terms: string[]; sources: Planned[] }> {
  const { folder } = allowed;
  const named = sources.length === 0 && folder !== undefined ? await filesBelow(folder) : [];
  const all: Source[] = [...sources, ...named.map((file) => ({ file }))];
  if (all.length === 0) throw new FatalError("there is nothing to look in: name a text, a file or a URL");
  for (const source of all) check(source, allowed);
  const terms = termsOf(topic);
  if (terms.length === 0) throw new FatalError("the topic has no word in it");
  return {
    terms,
    sources: all.map((source, index) => {
      const key = `source ${index + 1}`;
      if ("text" in source) return { key, title: source.title ?? `text ${index + 1}`, text: index };
      return { key, title: "file" in source ? source.file : source.url, ...source };
    }),
  };
}

/** Reads one source and keeps what bears on the topic: a stored result is no place for whole documents. */
async function look(
  planned: Planned,
  terms: readonly string[],
  task: Task<Input, Settings>,
  step: Step,
): Promise<Looked> {
  const { title } = planned;
  const source = "text" in planned ? task.input.sources[planned.text] : planned;
  if (source === undefined) throw new FatalError(`${title} is no longer in the task`);
  try {
    return await step.run(
      "read",
      async ({ signal }) => {
        const { text, ...size } = await read(source, task.settings, signal);
        return { title, ...size, found: search(text, terms) };
      },
      { timeout: task.settings.readWithinSec * 1_000 },
    );
  } catch (error) {
    // Every attempt has failed. That is stored, so the next run of this handler comes by here as well.
    return { title, failed: error instanceof Error ? error.message : String(error) };
  }
}

/** Lets the requester choose what the report is about. Without an answer, and without a choice, it is everything. */
async function focusOf(
  found: readonly Findings[],
  topic: string,
  task: Task<Input, Settings>,
  step: Step,
): Promise<string> {
  const choices = mostFrequentOf(found, MAX_CHOICES);
  if (choices.length < 2) return EVERYTHING;
  const total = found.reduce((sum, { total }) => sum + total, 0);
  const words = choices.map(([word, count]) => `${word} (${count})`).join(", ");
  const prompt = `There are ${total} passages on “${topic}”. Which of these words shall they hold as well: ${words}? Answer with one of them, or with “${EVERYTHING}”.`;
  // An answer that is none of them is met by the same question, with this error's words before it.
  const answers = [EVERYTHING, ...choices.map(([word]) => word)];
  const schema = z
    .string()
    .trim()
    .toLowerCase()
    .pipe(z.enum(answers, `expected one of ${answers.join(", ")}`));
  try {
    return await step.ask("focus", prompt, { schema, timeout: task.settings.answerWithinSec * 1_000 });
  } catch (error) {
    if (error instanceof ReplyTimeout) return EVERYTHING;
    throw error;
  }
}

/** The best passages of a source, in the order of its text. */
function quoted({ passages }: Findings, focus: string): Passage[] {
  return passages
    .filter(({ text }) => focus === EVERYTHING || scoreOf(text, [focus]) > 0)
    .sort((a, b) => b.score - a.score || a.line - b.line)
    .slice(0, MAX_QUOTED)
    .sort((a, b) => a.line - b.line);
}

function chapter(title: string, passages: readonly Passage[]): string {
  const quotes = passages.map(({ line, text }) => `${text.replace(/^/gm, "> ")}\n\n(line ${line})`);
  return [`## ${title}`, ...quotes].join("\n\n").concat("\n");
}

function overview(topic: string, focus: string, looked: readonly Looked[]): string {
  const lines = looked.map((of) => {
    if ("failed" in of) return `- ${of.title}: could not be read: ${of.failed}`;
    const size = of.cut ? `only its first ${of.bytes} bytes were read` : `${of.bytes} bytes`;
    return `- ${of.title}: ${of.found.total} passages; ${size}`;
  });
  const about = focus === EVERYTHING ? "" : `, and there: ${focus}`;
  return [`# ${topic}${about}`, lines.join("\n")].join("\n\n").concat("\n");
}

export default defineAgent({
  id: "research",
  description:
    "Looks for a topic in texts, files and pages, asks what matters, and reports what it found where.",
  settings,
  skills: {
    task: skill({
      name: "Research",
      description:
        'Takes { "topic": …, "sources": [{ "text": … }, { "file": … }, { "url": … }] }, or a topic and below it a text; returns a report in chapters.',
      tags: ["text", "report"],
      settings,
      input,
      async run(task, step) {
        const { topic } = task.input;
        step.status("planning");
        const { terms, sources } = await step.run("plan", () => plan(task.input, task.settings));

        // Each source is a branch of its own, so that all of them may call their step “read”.
        let done = 0;
        const looked = await step.each(
          sources,
          ({ key }) => key,
          async (source, step) => {
            const of = await look(source, terms, task, step);
            done++;
            const progress = { lookedAt: done, sources: sources.length };
            step.status(`looked at ${done} of ${sources.length}: ${of.title}`, progress);
            return of;
          },
          { concurrency: CONCURRENCY },
        );
        const readable = looked.filter((of) => "found" in of);
        if (readable.length === 0)
          throw new FatalError(`no source could be read\n${overview(topic, EVERYTHING, looked)}`);

        const focus = await focusOf(
          readable.map(({ found }) => found),
          topic,
          task,
          step,
        );

        const chapters = readable
          .map(({ title, found }) => ({ title, passages: quoted(found, focus) }))
          .filter(({ passages }) => passages.length > 0);
        const report = [
          overview(topic, focus, looked),
          ...chapters.map(({ title, passages }) => chapter(title, passages)),
        ];
        // Chapter by chapter: the requester has the first while the last is not yet there.
        for (const [index, text] of report.entries()) {
          const chunk = index === 0 ? text : `\n${text}`;
          const part = { text: chunk, mediaType: "text/markdown", filename: "report.md" };
          await step.artifact("report", part, { append: true });
          const written = index + 1;
          step.status(`wrote ${written} of ${report.length} parts of the report`, {
            written,
            parts: report.length,
          });
        }
        const passages = chapters.reduce((sum, { passages }) => sum + passages.length, 0);
        return {
          text: report.join("\n"),
          metrics: {
            sources: readable.length,
            passages,
            bytes: readable.reduce((sum, { bytes }) => sum + bytes, 0),
          },
        };
      },
    }),
  },
});
