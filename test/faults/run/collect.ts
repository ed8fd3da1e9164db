import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { timing } from "../../../shared/config/timing.ts";
import type { Entry } from "../../../shared/tasks/items.ts";
import { forwarded, MAX_RECEIVES, workHint } from "../../../shared/tasks/messages.ts";
import { parseSubject, taskIdOf, taskSubject } from "../../../shared/wire/index.ts";
import { trace } from "../../fixtures/faults/agents/parts/program.ts";
import { runOf } from "./checks/journal.ts";
import { readAllEvents } from "./event-reader.ts";
import type { DeadLetter, EventRecord, Ledger, SlotsRecord, TaskRecord } from "./ledger.ts";
import type { RealParts } from "./parts.ts";
import type { Given } from "./peer-book.ts";
import { pendingOf } from "./settle.ts";
import { childFile } from "./specs.ts";
import type { Toll } from "./toll.ts";
import type { Watch } from "./watch.ts";

/** Where a ledger's lines come from. */
export interface Sources {
  readonly given: readonly Given[];
  readonly parts: RealParts;
  readonly nc: NatsConnection;
  readonly watch: Watch;
  readonly toll: Toll;
  readonly timeScale: number;
  readonly dataDir: string;
  /** Where a task's steps leave their lines. */
  readonly fileOf: (messageId: string) => string;
  /** The events as they were seen at first. */
  readonly seen: readonly EventRecord[];
  /** The limits of agents that have one, by runtime. */
  readonly limits: Readonly<Record<string, number>>;
  /** Tasks that had not come to rest before the last host was started. */
  readonly stuck: readonly string[];
}

/** Closes the ledger: reads the stream once more from its beginning, the table, the queues, and the steps' files. */
export async function collect(sources: Sources): Promise<Ledger> {
  const { parts, nc, toll, given, seen } = sources;
  const events = await readAllEvents(nc);
  const byTask = Map.groupBy(events, ({ subject }) => subject.split(".")[5] ?? "");
  const tasks: TaskRecord[] = [];
  for (const one of given) {
    const record = await recordOf(sources, knownOf(one, sources.fileOf(one.spec.messageId)), byTask);
    tasks.push(record);
    for (const child of childrenOf(record, sources.fileOf))
      tasks.push(await recordOf(sources, child, byTask));
  }
  return {
    tasks,
    leaseMs: timing(sources.timeScale).leaseMs,
    closedAt: Date.now(),
    due: await parts.due(),
    queues: await parts.depths(),
    consumers: await pendingOf(nc),
    dead: await deadLetters(sources),
    slots: await slotsOf(sources),
    troubles: toll.troubles,
    changed: changes(seen, events),
    stuck: sources.stuck,
  };
}

/** What is known of a task from outside. */
type Known = Pick<TaskRecord, "taskId" | "messageId" | "to" | "what" | "ends" | "mayWait" | "controls"> & {
  readonly subject: string;
  readonly published: number;
  /** Where its steps leave their lines. */
  readonly file: string;
};

function knownOf({ spec, taskId, to, subject, published, controls }: Given, file: string): Known {
  const { messageId, what, ends, mayWait } = spec;
  return { taskId, messageId, to, subject, what, ends, mayWait, published, controls, file };
}

/** The tasks that a task has handed on, by its journal. They may end in any way; their parent's end tells. */
function childrenOf(
  { to: from, entries, messageId: parent }: TaskRecord,
  fileOf: Sources["fileOf"],
): Known[] {
  return entries.flatMap(({ opens = [] }) =>
    opens.flatMap(({ child }): Known[] => {
      if (child === undefined) return [];
      const { to, messageId } = child;
      return [
        {
          taskId: taskIdOf(from, to, messageId),
          messageId,
          to,
          subject: taskSubject(from, to, messageId),
          what: `child of ${parent}`,
          // The time of its question may be over before its parent's cancel has come through.
          ends: ["COMPLETED", "FAILED internal", "FAILED timeout", "CANCELED canceled"],
          mayWait: false,
          published: 0,
          controls: [],
          file: childFile(fileOf(parent)),
        },
      ];
    }),
  );
}

async function recordOf(
  { parts, nc, watch }: Sources,
  { subject, file, ...known }: Known,
  events: ReadonlyMap<string, EventRecord[]>,
): Promise<TaskRecord> {
  const { taskId, messageId } = known;
  const head = await parts.store.head(taskId);
  const entries = await parts.store.entries(taskId, 1);
  const of = <T extends { taskId: string }>(all: readonly T[]) => all.filter((one) => one.taskId === taskId);
  const jsm = await jetstreamManager(nc);
  const message = await jsm.streams.getMessage("A2A_TASKS", { last_by_subj: subject });
  return {
    ...known,
    published: Math.max(known.published, message === null ? 0 : 1),
    onStream: message !== null,
    events: [...(events.get(taskId) ?? []), ...(events.get(`msg_${messageId}`) ?? [])],
    ...(head === undefined ? {} : { head }),
    entries,
    bodies: await bodiesOf(parts, entries),
    stored: await storedOf(parts, entries),
    runs: tracesOf(file),
    claims: of(watch.claims),
    confirmed: Object.fromEntries(of(watch.entries).map(({ place, at }) => [place, at])),
    acked: of(watch.acks).map(({ at }) => at),
  };
}

async function bodiesOf(parts: RealParts, entries: readonly Entry[]): Promise<Record<number, string>> {
  const bodies: Record<number, string> = {};
  for (const { revision, body } of entries.flatMap(({ events = [] }) => events))
    bodies[revision] = await parts.values.text(body);
  return bodies;
}

async function storedOf(parts: RealParts, entries: readonly Entry[]): Promise<Record<string, string | null>> {
  const stored: Record<string, string | null> = {};
  for (const { name, kind, value, error } of entries.flatMap(({ steps = [] }) => steps))
    if (kind === "run") stored[name] = error === undefined ? runOf(await parts.values.text(value)) : null;
  return stored;
}

function tracesOf(file: string) {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => trace.parse(JSON.parse(line)));
}

/**
 * The dead letters with their causes. A letter is explained by its function's own words, or when its function has died
 * at least as often as a message may be received, and another copy of the message was decided.
 */
async function deadLetters({ parts, dataDir }: Sources): Promise<DeadLetter[]> {
  const letters = await parts.deadLetters();
  if (letters.length === 0) return [];
  const buried = linesWith(dataDir, BURIED);
  const deaths = [...linesWith(dataDir, "Task timed out after"), ...linesWith(dataDir, "Runtime exited")];
  const read = letters.map(async ({ queue, body }): Promise<DeadLetter> => {
    const { taskId, subject } = addressOf(body);
    if (subject !== undefined && buried.some((line) => line.includes(subject)))
      return { queue, body, taskId, buried: true, cause: `its function ${BURIED}` };
    const of = CONSUMERS[queue.split("-")[0] ?? ""] ?? queue;
    const died = deaths.filter((line) => line.startsWith(`${of}.log`)).length;
    const decided = taskId !== undefined && (await parts.store.head(taskId)) !== undefined;
    const letter = { queue, body, taskId, buried: false };
    return died < MAX_RECEIVES || !decided ? letter : { ...letter, cause: `${of} has died ${died} times` };
  });
  return Promise.all(read);
}

const BURIED = "has ended its function on every receive";
/** Which function takes the messages of a queue. */
const CONSUMERS: Readonly<Record<string, string>> = {
  tasks: "admit",
  controls: "control",
  events: "events",
  work: "work",
};

/** Whose a message on a queue is. */
function addressOf(body: string): { taskId: string | undefined; subject: string | undefined } {
  const read: unknown = JSON.parse(body);
  const { subject } = forwarded().safeParse(read).data ?? {};
  const parsed = subject === undefined ? null : parseSubject(subject);
  if (parsed?.kind === "task") return { taskId: taskIdOf(parsed.from, parsed.to, parsed.messageId), subject };
  if (parsed?.kind === "control") return { taskId: parsed.taskId, subject };
  return { taskId: workHint().safeParse(read).data?.taskId, subject };
}

/** The lines of the functions' logs that hold a text, with their files' names, in no order across files. */
export function linesWith(dataDir: string, text: string): string[] {
  const logs = join(dataDir, "logs");
  return readdirSync(logs).flatMap((name) =>
    readFileSync(join(logs, name), "utf8")
      .split("\n")
      .filter((line) => line.includes(text))
      .map((line) => `${name}: ${line}`),
  );
}

async function slotsOf({ parts, watch, limits }: Sources): Promise<SlotsRecord[]> {
  const records = Object.entries(limits).map(async ([runtime, max]): Promise<SlotsRecord> => {
    const { live, queued, lastFrom } = await parts.store.slots(runtime);
    const next = await parts.store.nextWaiter(runtime, lastFrom);
    const mostLive = watch.mostLive.get(runtime) ?? 0;
    return { runtime, max, mostLive, live: [...live], queued, inLine: next !== undefined };
  });
  return Promise.all(records);
}

/** Where the stream differs from what was read of it at first. */
function changes(seen: readonly EventRecord[], now: readonly EventRecord[]): string[] {
  const bySeq = new Map(now.map((event) => [event.seq, event]));
  return seen.flatMap(({ seq, body, subject }) => {
    const there = bySeq.get(seq);
    if (there === undefined) return `${seq} ${subject} is gone`;
    return there.body === body ? [] : `${seq} ${subject} is now ${there.subject}`;
  });
}
