import { defineAgent, type Message, type Outcome, skill } from "sluice";
import * as z from "zod";

/** Text comes back as text, everything else as data. */
export function echo(message: Message): Outcome {
  const texts = message.parts.flatMap((part) => ("text" in part ? [part.text] : []));
  const others = message.parts.flatMap((part) => ("text" in part ? [] : ["data" in part ? part.data : part]));
  return {
    ...(texts.length > 0 && { text: texts.join("\n") }),
    ...(others.length > 0 && { data: others.length === 1 ? others[0] : others }),
  };
}

export default defineAgent({
  id: "echo",
  description: "Gives back the text and the data that it is sent: to see whether a peer gets through.",
  skills: {
    task: skill({
      name: "Echo",
      description: "Returns the message's text and data unchanged.",
      tags: ["diagnostics"],
      input: z.unknown(),
      run: (task) => echo(task.message),
    }),
  },
});
