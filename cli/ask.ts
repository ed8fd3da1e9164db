import { Command, Option } from "commander";
import * as z from "zod";
import { asksOperator, type TaskEvent } from "../shared/wire/index.ts";
import { isQuestion } from "./control.ts";
import { confirmed, planDelegation, usedToken } from "./delegation/confirm.ts";
import { Dialogue } from "./dialogue.ts";
import { EXIT, Left } from "./errors.ts";
import { findNats } from "./nats.ts";
import { common, hops, runtime, seconds, withCommon } from "./options.ts";
import { artifactHint, endText, eventLine, questionText, waitText } from "./render.ts";
import { inSession, ownRuntime, type Session } from "./session.ts";
import { Silence } from "./silence.ts";
import { findTarget } from "./target.ts";
import { askTask, type Order, type Sent, SentBefore, sendTask } from "./task.ts";
import { cleanLine } from "./text.ts";
import { readWords } from "./words.ts";

export { askTask };

/** How long to wait when `--timeout` is not given; the executor's own default applies to the task. */
const DEFAULT_WAIT_SEC = 600;

const options = common.extend({
  from: z.string().optional(),
  skill: z.string(),
  channel: z.string().optional(),
  file: z.string().optional(),
  timeout: z.number().optional(),
  depth: z.number(),
  wait: z.boolean(),
  plan: z.boolean().default(false),
  confirm: z.string().optional(),
});
type Options = z.infer<typeof options>;

export function askCommand(): Command {
  return withCommon(new Command("ask"))
    .description("give an agent a task and follow it to its end")
    .argument("<agent>", "an agent's short id (digest) or whole runtime id (local-digest)")
    .argument("[message...]", "what to do; after --, its words may begin with -")
    .option("--file <path>", "take the message from a file, - is stdin; *.json is sent as data")
    .option("--skill <slug>", "which of the agent's skills", "task")
    .option("--from <runtime>", "as whom to ask (default: <deployment>-cli)", runtime)
    .option("--channel <ref>", "channelRef of a runtime that shows no card")
    .option("--timeout <seconds>", "how long the task may take, and how long to wait", seconds)
    .option("--depth <n>", "how many times the work may be handed on to other agents", hops, 1)
    .option("--no-wait", "print the task's id and return")
    .addOption(
      new Option(
        "--plan",
        "send nothing: show what would be sent and, for another deployment, its token",
      ).conflicts("confirm"),
    )
    .option("--confirm <token>", "send what was planned: the confirmation token that --plan has shown")
    .action(async (agent: string, words: string[], given: unknown) => {
      process.exitCode = await ask(agent, words, options.parse(given));
    });
}

async function ask(agent: string, words: readonly string[], given: Options): Promise<number> {
  const message = await readWords(words, given.file);
  const work = async (session: Session): Promise<number> => {
    const { nc, home, out } = session;
    const target = await findTarget(nc, home, agent, given.channel);
    const order: Order = {
      from: given.from ?? ownRuntime(home),
      to: target.runtime,
      channelRef: target.channelRef,
      skill: given.skill,
      message,
      depth: given.depth,
      ...(given.timeout !== undefined && { timeoutSec: Math.ceil(given.timeout) }),
    };
    const { env } = process;
    const delegation = { home, order, out, env, servers: findNats(given, env, home).servers };
    if (given.plan) {
      planDelegation(delegation);
      return EXIT.ok;
    }
    const sent = await confirmed(delegation, given.confirm);
    return given.wait ? follow(session, sent, given) : leave(session, sent);
  };
  return inSession(given, work).catch((error: unknown) => {
    throw error instanceof SentBefore ? usedToken() : error;
  });
}

/** Sends a task, and tells its id alone. */
async function leave({ nc, out }: Session, order: Order): Promise<number> {
  const sent = await sendTask(nc, order);
  out.record({ ...sent, from: order.from, to: order.to });
  out.line(sent.taskId);
  return EXIT.ok;
}

/** Sends a task, and shows its events to the end. */
async function follow(
  { nc, out, interrupted }: Session,
  order: Order,
  given: Pick<Options, "timeout">,
): Promise<number> {
  const c = out.colours;
  using silence = new Silence(nc, out, order.to);
  using dialogue = out.interactive ? new Dialogue(nc, out) : undefined;
  let taskId: string | undefined;
  let isTaken = false;
  const showSent = (sent: Sent) => {
    taskId = sent.taskId;
    out.line(`${"sent".padEnd(10)} ${taskId} to ${order.to}`);
    out.waitingFor(`waiting for ${order.to}`);
  };
  const artifacts = new Set<string>();
  const showEvent = (event: TaskEvent) => {
    silence.broken();
    isTaken = true;
    out.record(event);
    if (event.artifact !== undefined) artifacts.add(event.artifact.id);
    dialogue?.note(event);
    if (exitCodeOf(event) !== null) return;
    if (isQuestion(event)) return showQuestion(event);
    out.line(eventLine(event, c));
    if (event.kind !== "artifact") out.waitingFor(cleanLine(event.content, 70) || "at work");
  };
  const showQuestion = (event: TaskEvent) => {
    out.line(questionText(event, c));
    // Whoever sits here as the task's sender cannot answer for the operator.
    if (dialogue !== undefined && !asksOperator(event)) return dialogue.put(event);
    out.line(waitText(event));
    out.waitingFor(waitText(event));
  };
  const end = await askTask(nc, {
    ...order,
    timeoutMs: (given.timeout ?? DEFAULT_WAIT_SEC) * 1_000,
    onSent: showSent,
    onEvent: showEvent,
    signal: interrupted,
  }).catch((error: unknown) => {
    throw interrupted.aborted && taskId !== undefined ? new Left(taskId, isTaken) : error;
  });
  out.done();
  if (artifacts.size > 0) out.line(c.dim(artifactHint(end.taskKey, artifacts.size)));
  out.line(endText(end, c));
  return exitCodeOf(end) ?? EXIT.failed;
}

/** The exit code that an event means; null while the task goes on. */
export function exitCodeOf(event: Pick<TaskEvent, "state" | "error">): number | null {
  switch (event.state) {
    case "TASK_STATE_COMPLETED":
      return EXIT.ok;
    case "TASK_STATE_FAILED":
      // Whether the executor or we look at the clock first must make no difference.
      return event.error?.code === "timeout" ? EXIT.timedOut : EXIT.failed;
    case "TASK_STATE_CANCELED":
    case "TASK_STATE_REJECTED":
      return EXIT.failed;
    default:
      return null;
  }
}
