import type { ModelMessage } from "ai";

/** What the model reads: the task, and of the turns since as many of the newest as there is room for. */
export interface Transcript {
  readonly task: string;
  /** What each turn has added: the model's message and the results of the tools that it called. */
  readonly turns: readonly (readonly ModelMessage[])[];
}

/**
 * The messages of a transcript. The task and the newest turn are always among them; older turns are left out whole,
 * for a tool's result without its call is refused by providers.
 *
 * @param maxCharacters how much room there is, as JSON
 */
export function messagesOf({ task, turns }: Transcript, maxCharacters: number): ModelMessage[] {
  let room = maxCharacters - task.length;
  let first = turns.length;
  while (first > 0) {
    room -= JSON.stringify(turns[first - 1]).length;
    if (room < 0 && first < turns.length) break;
    first--;
  }
  const note = first === 0 ? "" : `\n\n(${first} earlier turns are left out here.)`;
  return [{ role: "user", content: `${task}${note}` }, ...turns.slice(first).flat()];
}
