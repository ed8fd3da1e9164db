import type { Ora } from "ora";
import { type Colours, colours, jsonLine, wantsColour } from "./text.ts";

/** Where a verb writes: lines for people or JSON for programs; a spinner only on a terminal. */
export interface Output {
  readonly json: boolean;
  readonly colours: Colours;
  /** Columns of the terminal; without end where it is none. */
  readonly width: number;
  /** Whether a person sits there who can be asked something. */
  readonly interactive: boolean;
  /** A line for people; nothing under `--json`. The text must be clean already (text.ts). */
  line(text: string): void;
  /** A line for programs; nothing without `--json`. */
  record(value: unknown): void;
  /** A remark for people, on stderr. */
  note(text: string): void;
  /** What is being waited for, shown by the spinner alone. */
  waitingFor(text: string): void;
  /** Takes the spinner away. */
  done(): void;
}

/** The output of a process on its own stdout. */
export function processOutput(json: boolean): Output {
  const { stdout, stderr, env } = process;
  const isTerminal = stdout.isTTY === true;
  let spinner: Ora | undefined;
  let waitsFor: string | undefined;
  /** It takes a fifth of a command's start to load, and most commands show none. */
  const spin = async () => {
    const { default: ora } = await import("ora");
    spinner ??= ora({ stream: stdout, discardStdin: false });
    if (waitsFor === undefined) return;
    spinner.text = waitsFor;
    if (!spinner.isSpinning) spinner.start();
  };
  const besideSpinner = (write: () => void) => {
    const wasSpinning = spinner?.isSpinning === true;
    if (wasSpinning) spinner?.stop();
    write();
    if (wasSpinning) spinner?.start();
  };
  return {
    json,
    colours: colours(wantsColour(isTerminal, env)),
    width: isTerminal && stdout.columns > 0 ? stdout.columns : Number.POSITIVE_INFINITY,
    interactive: isTerminal && process.stdin.isTTY === true && !json,
    line(text) {
      if (!json) besideSpinner(() => stdout.write(`${text}\n`));
    },
    record(value) {
      if (json) stdout.write(`${jsonLine(value)}\n`);
    },
    note(text) {
      besideSpinner(() => stderr.write(`sluice: ${text}\n`));
    },
    waitingFor(text) {
      // A terminal without a width (`docker run -t`, `script`) would make ora clear lines for ever.
      if (json || !isTerminal || !(stdout.columns > 0)) return;
      waitsFor = text;
      void spin();
    },
    done() {
      waitsFor = undefined;
      spinner?.stop();
    },
  };
}
