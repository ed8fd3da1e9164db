/**
 * What an agent of the tests does with a message: its text, a step a line. A line that is no step, and a text without
 * any, makes an agent that echoes.
 *
 * | line | what happens |
 * | --- | --- |
 * | `working TEXT` | says so, with the state working |
 * | `artifact NAME TEXT` | a whole artifact |
 * | `chunk NAME TEXT`, `last NAME TEXT` | more of one; the last of it |
 * | `data NAME JSON` | an artifact of one data part |
 * | `file NAME MEDIATYPE TEXT` | an artifact of bytes, which are the text's |
 * | `link NAME URL` | an artifact that is elsewhere |
 * | `observe KIND JSON` | a value of an extension: `cost`, `confidence`, `worldstate-delta`, `tool-call` |
 * | `ask TEXT`, `auth TEXT` | asks, and goes on with the next line once it is answered; `{reply}` is the answer's text |
 * | `complete TEXT`, `fail TEXT`, `reject TEXT`, `cancel TEXT` | ends the task; what follows is not done |
 * | `message TEXT` | as the first line: answers without a task |
 * | `pause MS`, `hold NAME`, `never` | waits: a time, for `server.release(NAME)`, until it is cancelled |
 */
export interface Line {
  readonly verb: Verb;
  readonly rest: string;
}

const VERBS = [
  "working",
  "artifact",
  "chunk",
  "last",
  "data",
  "file",
  "link",
  "observe",
  "ask",
  "auth",
  "complete",
  "fail",
  "reject",
  "cancel",
  "message",
  "pause",
  "hold",
  "never",
] as const;
export type Verb = (typeof VERBS)[number];

/** Reads a script; of a text that is none, one that echoes it. */
export function readScript(text: string): readonly Line[] {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const read = lines.flatMap((line) => {
    const [word = "", rest = ""] = cut(line);
    const verb = VERBS.find((of) => of === word);
    return verb === undefined ? [] : [{ verb, rest }];
  });
  return read.length === lines.length && read.length > 0 ? read : echo(text);
}

function echo(text: string): readonly Line[] {
  const oneLine = text.replaceAll("\n", " ");
  return [
    { verb: "working", rest: "on it" },
    { verb: "artifact", rest: `answer echo: ${oneLine}` },
    { verb: "complete", rest: "done" },
  ];
}

/** The first word, and what comes after it. */
export function cut(text: string): readonly [string, string] {
  const space = text.indexOf(" ");
  return space === -1 ? [text, ""] : [text.slice(0, space), text.slice(space + 1)];
}
