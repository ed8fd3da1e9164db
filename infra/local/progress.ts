import ora, { type Ora } from "ora";

/** Tells what goes on: a spinner on a terminal, plain lines in a pipe. */
export interface Progress {
  /** What is being done now; the next call, or `done`, says that it is over. */
  doing(what: string): void;
  /** A line that stays. */
  line(text: string): void;
  /** Nothing is being done any more. */
  done(): void;
}

export function progressOn(stream: NodeJS.WriteStream): Progress {
  // A terminal that has no width yet (`docker run -t`, `script`) makes ora clear lines for ever.
  return stream.isTTY && stream.columns > 0 ? spinner(stream) : lines(stream);
}

function spinner(stream: NodeJS.WriteStream): Progress {
  // It must not touch stdin, or Ctrl-C would no longer be a signal.
  const spinning: Ora = ora({ stream, discardStdin: false });
  return {
    doing: (what) => void spinning.start(what),
    line(text) {
      const again = spinning.isSpinning;
      if (again) spinning.stop();
      stream.write(`${text}\n`);
      if (again) spinning.start();
    },
    done: () => void spinning.stop(),
  };
}

function lines(stream: NodeJS.WriteStream): Progress {
  const line = (text: string) => void stream.write(`${text}\n`);
  return { doing: (what) => line(`${what} …`), line, done: () => {} };
}
