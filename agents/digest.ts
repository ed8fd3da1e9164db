import { createHash } from "node:crypto";
import { defineAgent, type Message, skill } from "sluice";
import * as z from "zod";

const TOP_WORDS = 10;
const TOP_KEYS = 50;
/** How much is shown of a word or a key, in characters. */
const MAX_NAME = 64;
const WORD = /[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu;

/** What is digested: a text, or JSON together with the text that it stands in. */
type Material = { kind: "text"; text: string } | { kind: "json"; text: string; json: unknown };

/** Data is JSON, and so is a text that holds an object or an array; any other text is only text. */
export function materialOf(message: Message): Material {
  const data = message.parts.find((part) => "data" in part);
  if (data !== undefined && "data" in data)
    return { kind: "json", text: JSON.stringify(data.data), json: data.data };
  const text = message.parts.flatMap((part) => ("text" in part ? [part.text] : [])).join("\n");
  if (!/^\s*[[{]/.test(text)) return { kind: "text", text };
  try {
    return { kind: "json", text, json: JSON.parse(text) };
  } catch {
    return { kind: "text", text };
  }
}

/** Sizes of a text and its SHA-256, all over its UTF-8 form. */
export function measure(text: string) {
  const bytes = Buffer.from(text, "utf8");
  return {
    bytes: bytes.length,
    characters: [...text].length,
    lines: text === "" ? 0 : text.split(/\r\n|\n|\r/).length,
    sha256: createHash("sha256").update(bytes).digest("hex"),
  };
}

/** How many words there are, how many different ones, and the most frequent; ties in alphabetical order. */
export function countWords(text: string) {
  const counts = new Map<string, number>();
  for (const [word] of text.toLowerCase().matchAll(WORD)) counts.set(word, (counts.get(word) ?? 0) + 1);
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  return { total, distinct: counts.size, top: mostFrequent(counts, TOP_WORDS) };
}

function mostFrequent(counts: ReadonlyMap<string, number>, limit: number) {
  return [...counts]
    .sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
    .slice(0, limit)
    .map(([name, count]) => ({ name: shortened(name), count }));
}

/** A megabyte without a blank is one word. */
function shortened(name: string): string {
  if (name.length <= MAX_NAME) return name;
  const characters = [...name.slice(0, 2 * MAX_NAME)];
  const isWhole = name.length <= 2 * MAX_NAME && characters.length <= MAX_NAME;
  return isWhole ? name : `${characters.slice(0, MAX_NAME - 1).join("")}…`;
}

/** The shape of a text: paragraphs are what empty lines divide. */
export function shapeOfText(text: string) {
  const paragraphs = text.split(/\n\s*\n/).filter((part) => part.trim() !== "");
  const longest = text.split(/\r\n|\n|\r/).reduce((max, line) => Math.max(max, line.length), 0);
  return { kind: "text" as const, paragraphs: paragraphs.length, longestLine: longest };
}

const typeOf = (value: unknown) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

/** The shape of a JSON value. Walked with a list of its own: peers may nest deeper than the call stack is. */
export function shapeOfJson(json: unknown) {
  const types: Record<string, number> = {};
  const keys = new Map<string, number>();
  let depth = 0;
  const open: { value: unknown; level: number }[] = [{ value: json, level: 0 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, level } = next;
    const type = typeOf(value);
    types[type] = (types[type] ?? 0) + 1;
    if (typeof value !== "object" || value === null) continue;
    depth = Math.max(depth, level + 1);
    if (!Array.isArray(value)) for (const key of Object.keys(value)) keys.set(key, (keys.get(key) ?? 0) + 1);
    for (const child of Object.values(value)) open.push({ value: child, level: level + 1 });
  }
  const ownKeys = typeOf(json) === "object" ? Object.keys(Object(json)) : [];
  return {
    kind: "json" as const,
    type: typeOf(json),
    depth,
    types,
    distinctKeys: keys.size,
    topLevelKeys: ownKeys.slice(0, TOP_KEYS).map(shortened),
    keys: mostFrequent(keys, TOP_KEYS),
  };
}

type Sizes = ReturnType<typeof measure>;
type Words = ReturnType<typeof countWords>;
type Shape = ReturnType<typeof shapeOfText> | ReturnType<typeof shapeOfJson>;

/** The report in two sentences and a line of words, for people. */
export function summarize(sizes: Sizes, words: Words, shape: Shape): string {
  const count = (n: number, noun: string) => `${n} ${noun}${n === 1 ? "" : "s"}`;
  const form =
    shape.kind === "json"
      ? `JSON ${shape.type}, ${count(shape.depth, "level")} deep, ${count(shape.distinctKeys, "different key")}`
      : `Text of ${count(shape.paragraphs, "paragraph")}`;
  const top = words.top.map(({ name, count: n }) => `${name} (${n})`).join(", ");
  return [
    `${form}; ${count(sizes.bytes, "byte")}, ${count(sizes.lines, "line")}, ${count(words.total, "word")}, ${words.distinct} different.`,
    ...(top === "" ? [] : [`Most frequent: ${top}.`]),
    `sha256 ${sizes.sha256}`,
  ].join("\n");
}

export default defineAgent({
  id: "digest",
  description: "Reads a text or a JSON document and reports its size, its words, its shape and its SHA-256.",
  skills: {
    task: skill({
      name: "Digest",
      description:
        "Takes text or JSON; returns a summary, and the whole report as the JSON artifact `report`.",
      tags: ["text", "json", "report"],
      input: z.unknown(),
      async run(task, step) {
        const material = materialOf(task.message);

        step.status(`measuring ${material.kind === "json" ? "a JSON document" : "a text"}`);
        const sizes = await step.run("measure", () => measure(material.text));

        step.status(`counting the words in ${sizes.bytes} bytes`);
        const words = await step.run("words", () => countWords(material.text));

        step.status(`looking at the structure of ${sizes.lines} lines`);
        const shape = await step.run("structure", () =>
          material.kind === "json" ? shapeOfJson(material.json) : shapeOfText(material.text),
        );

        step.status("writing the report");
        const summary = await step.run("summary", () => summarize(sizes, words, shape));
        await step.artifact("report", { data: { ...sizes, words, shape }, filename: "report.json" });
        return summary;
      },
    }),
  },
});
