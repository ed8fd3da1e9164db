import { createInterface } from "node:readline/promises";

/** Asks the person at the terminal; anything but `yes`, and the end of the input, is no. */
export async function confirm(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const ended = new Promise<string>((resolve) => lines.once("close", () => resolve("")));
  try {
    const answer = await Promise.race([lines.question(`${question} (yes or no): `), ended]);
    return answer.trim().toLowerCase() === "yes";
  } finally {
    lines.close();
  }
}
