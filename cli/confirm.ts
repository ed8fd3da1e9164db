import { createInterface } from "node:readline/promises";

/** Asks the person at the terminal for a line; nothing at the end of the input. */
export async function askLine(question: string): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const ended = new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)));
  try {
    return await Promise.race([lines.question(question), ended]);
  } finally {
    lines.close();
  }
}

/** Asks the person at the terminal; anything but `yes` or `y`, and the end of the input, is no. */
export async function confirm(question: string): Promise<boolean> {
  const answer = await askLine(`${question} (yes or no): `);
  return /^(y|yes)$/i.test(answer?.trim() ?? "");
}
