import { createInterface } from "node:readline";
import type { NatsConnection } from "@nats-io/transport-node";
import type { TaskEvent } from "../shared/wire/index.ts";
import type { Answering } from "./answer.ts";
import { sendControl } from "./control.ts";
import type { Output } from "./output.ts";
import { waitText } from "./render.ts";

/** Puts a task's questions to the person at the terminal while the task's events come. */
export class Dialogue implements Disposable {
  readonly #nc: NatsConnection;
  readonly #out: Output;
  #revision = 0;
  #open: AbortController | undefined;

  constructor(nc: NatsConnection, out: Output) {
    this.#nc = nc;
    this.#out = out;
  }

  /** Takes note of an event before it is shown: whatever it says, what was asked before is no longer open. */
  note(event: TaskEvent): void {
    this.#revision = Math.max(this.#revision, event.revision);
    if (event.kind === "artifact" || this.#open === undefined) return;
    this.#open.abort();
    this.#open = undefined;
    this.#out.line("");
  }

  /** Puts a question after it is shown. */
  put(question: TaskEvent): void {
    this.#out.done();
    const open = new AbortController();
    this.#open = open;
    void this.#converse(question, open.signal)
      .catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        this.#out.note(`the answer is not sent: ${reason}; ${waitText(question)}`);
      })
      .finally(() => {
        if (this.#open === open) this.#open = undefined;
      });
  }

  [Symbol.dispose](): void {
    this.#open?.abort();
  }

  async #converse(question: TaskEvent, signal: AbortSignal): Promise<void> {
    const answering = await ask(question, signal);
    if (signal.aborted) return;
    if (answering === undefined) return this.#out.line(`\n${waitText(question)}`);
    const { taskKey: task, from: executor, to: delegator } = question;
    this.#out.waitingFor(`waiting for ${executor}`);
    await sendControl(this.#nc, { task, executor, delegator, revision: this.#revision }, answering);
  }
}

/** Undefined when the person has ended the input, or the question is taken back. */
async function ask({ state }: TaskEvent, signal: AbortSignal): Promise<Answering | undefined> {
  using terminal = openTerminal(signal);
  if (state === "TASK_STATE_INPUT_REQUIRED") {
    const input = await terminal.ask("answer: ", (text) => text !== "");
    return input === undefined ? undefined : { kind: "input_reply", a2a: { input } };
  }
  const said = await terminal.ask(
    "approve (yes or no): ",
    (text) => /^(y|yes|n|no)$/i.test(text),
    "expected yes or no; Ctrl-D leaves it open",
  );
  if (said === undefined) return undefined;
  const approve = /^y/i.test(said);
  const denyReason = approve ? undefined : await terminal.ask("why not (may be empty): ", () => true);
  return { kind: "auth_reply", a2a: { approve, ...(denyReason && { denyReason }) } };
}

function openTerminal(signal: AbortSignal) {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  // It keeps what is typed ahead.
  const typed = lines[Symbol.asyncIterator]();
  // On a terminal the interface takes Ctrl-C for itself; it means here what it means elsewhere.
  lines.on("SIGINT", () => process.emit("SIGINT"));
  const close = () => lines.close();
  signal.addEventListener("abort", close);
  return {
    /**
     * Asks until the text will do; undefined when there will be none.
     *
     * @param otherwise what is said of a text that will not
     */
    async ask(
      question: string,
      willDo: (text: string) => boolean,
      otherwise = "expected a text",
    ): Promise<string | undefined> {
      lines.setPrompt(question);
      for (;;) {
        lines.prompt();
        const line = await typed.next();
        if (line.done) return undefined;
        const text = line.value.trim();
        if (willDo(text)) return text;
        process.stdout.write(`${otherwise}\n`);
      }
    },
    [Symbol.dispose]() {
      signal.removeEventListener("abort", close);
      close();
    },
  };
}
