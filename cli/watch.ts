import { Command } from "commander";
import * as z from "zod";
import { isQuestion } from "./control.ts";
import { EXIT } from "./errors.ts";
import { eventsOf, openEvents } from "./events.ts";
import { common, runtime, withCommon } from "./options.ts";
import { eventLine, waitText } from "./render.ts";
import { inSession } from "./session.ts";
import { cleanLine, localTime } from "./text.ts";

const options = common.extend({ from: z.string().optional() });
type Options = z.infer<typeof options>;

export function watchCommand(): Command {
  return withCommon(new Command("watch"))
    .description("show every task's events as they come, until Ctrl-C")
    .option("--from <runtime>", "only events that this runtime sends or gets", runtime)
    .action(async (given: unknown) => {
      process.exitCode = await watch(options.parse(given));
    });
}

async function watch({ from, ...given }: Options): Promise<number> {
  return inSession(given, async ({ nc, out, interrupted }) => {
    // Not two filters, one for each direction: the server refuses filters that overlap.
    await using feed = await openEvents(nc, ["a2a.v1.event.>"]);
    interrupted.addEventListener("abort", () => feed.messages.stop());
    out.waitingFor("watching; Ctrl-C ends it");
    for await (const event of eventsOf(feed)) {
      if (from !== undefined && event.from !== from && event.to !== from) continue;
      const time = localTime(new Date()).slice("YYYY-MM-DD ".length);
      const task = event.kind === "accepted" ? "" : `  ${cleanLine(event.taskKey)}`;
      out.record(event);
      out.line(
        `${out.colours.dim(time)}  ${event.from} → ${event.to}${task}  ${eventLine(event, out.colours)}`,
      );
      if (isQuestion(event)) out.line(`${" ".repeat(time.length)}  ${out.colours.yellow(waitText(event))}`);
    }
    return EXIT.ok;
  });
}
