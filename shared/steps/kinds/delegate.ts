import type { DelegateOptions } from "../../agents/types.ts";
import type { Addressee } from "../../policy/choosing/choosing.ts";
import { cancelMessage, childMessageId, childTask } from "../../tasks/delegation.ts";
import { deadlineOf, type Waiting } from "../../tasks/fold.ts";
import { insist } from "../../tasks/insist.ts";
import type { Child } from "../../tasks/items.ts";
import type { Outgoing } from "../../wire/index.ts";
import { durable } from "../durable.ts";
import type { Done, Engine } from "../engine.ts";
import { describeError, reviveError, type StoredError } from "../failures.ts";
import { choiceFor, DELEGATION_ERROR } from "./delegate-choice.ts";
import { type Asked, askedOf, checkSize } from "./delegate-options.ts";
import { outcomeOf } from "./delegate-outcome.ts";

/** What is held back of the task's own time, so that it can do something with what comes of the other. */
const RESERVE_SHARE = 0.05;
const MAX_RESERVE_MS = 10_000;

type Delegation = Waiting & { readonly child: Child };

/**
 * Hands a task on, and waits for the end that `events` puts into the journal. The message is sent again by each run
 * until anything is heard of it: its id makes it one.
 */
export async function delegateStep(engine: Engine, id: string, options: DelegateOptions): Promise<Done> {
  const { view, clock } = engine;
  const asked = askedOf(engine, id, options);
  let open = view.open.get(id);
  if (open === undefined) {
    await engine.begin(id);
    const choice = await choiceFor(engine, id, asked);
    if ("error" in choice) return await fail(engine, id, choice.error);
    open = await handOn(engine, id, asked, choice);
  }
  const { child } = open;
  if (child === undefined)
    throw new TypeError(`step ${JSON.stringify(id)}: it does not say what it waits for`);
  const delegation = { ...open, child };
  // When its time is over nobody waits for it any more; if it was sent before, its `accepted` cancels it.
  if (!view.heard.has(id) && clock.now() < endOf(delegation)) await sendTask(engine, id, delegation, asked);
  return await heardOf(engine, id, delegation, asked);
}

function endOf({ until = Number.POSITIVE_INFINITY }: Waiting): number {
  return until;
}

/** Sends the task, for as long as its own time and the invocation's allow: it is no use to anybody later. */
async function sendTask(engine: Engine, id: string, delegation: Delegation, asked: Asked): Promise<void> {
  const { head, clock, limit, delegating } = engine;
  const message = childTask(head, delegation, requestOf(engine, asked));
  checkSize(id, message);
  const last = Math.min(limit, endOf(delegation));
  const patience = { ...clock, until: () => last };
  const sent = insist(() => delegating.messenger.send(message, head.traceparent), patience);
  if (last === limit) return await durable(sent);
  await sent.catch((error: unknown) =>
    engine.warn("a task could not be handed on in time", { step: id, errorName: describeError(error).name }),
  );
}

function requestOf({ delegating }: Engine, { a2a }: Asked) {
  return { a2a, contextId: delegating.contextId };
}

/** Stores a refusal, so that it stays one. */
async function fail({ writer }: Engine, id: string, error: StoredError): Promise<Done> {
  const step = { name: id, kind: "delegate" as const, value: { text: "" }, ms: 0, error };
  return { at: await durable(writer.add({ step })), error: reviveError(error) };
}

/** Stores that the task is handed on, and to whom, before it is: whoever runs the step again chooses nobody anew. */
async function handOn(engine: Engine, id: string, asked: Asked, choice: Addressee): Promise<Waiting> {
  const { head, clock, view, writer } = engine;
  const now = clock.now();
  const left = Math.max(0, Math.min(deadlineOf(head, view), engine.lifeEnd) - now);
  const reserve = Math.min(left * RESERVE_SHARE, MAX_RESERVE_MS);
  const { timeoutMs = Number.POSITIVE_INFINITY, onStatus } = asked;
  const { to, channelRef, skill, hops, why } = choice;
  const child: Child = {
    to,
    channelRef,
    skill,
    messageId: childMessageId(head.taskId, id),
    timeoutSec: Math.max(1, Math.floor(Math.min(timeoutMs, left - reserve) / 1_000)),
    depth: Math.max(0, (head.depth ?? 0) - 1),
    ...(onStatus !== undefined && { progress: true }),
    hops,
    ...(why !== "target" && { bySkill: true }),
  };
  checkSize(id, childTask(head, { child, since: now }, requestOf(engine, asked)));
  // An executor that is given nearly all of our time says itself that it is over, and is heard.
  const until = Math.round(now + Math.min(timeoutMs, left - reserve / 2));
  const open = { name: id, kind: "delegate" as const, until, child };
  return { ...open, since: await durable(writer.add({ open })) };
}

async function cancel({ clock, limit, head, delegating }: Engine, message: Outgoing): Promise<void> {
  const patience = { ...clock, until: () => limit };
  await durable(insist(() => delegating.messenger.send(message, head.traceparent), patience));
}

async function heardOf(engine: Engine, id: string, delegation: Delegation, asked: Asked): Promise<Done> {
  const { view, lot, clock, values } = engine;
  const { child } = delegation;
  const until = endOf(delegation);
  /** The revision of the last text that was passed on. */
  let passed = 0;
  const text = () => {
    const newest = view.heard.get(id)?.text;
    return newest !== undefined && newest.revision > passed && asked.onStatus !== undefined
      ? newest
      : undefined;
  };
  for (;;) {
    const told = view.heard.get(id);
    const news = text();
    if (told?.outcome !== undefined) return await outcomeOf(engine, id, child, told);
    if (news !== undefined) {
      passed = news.revision;
      const content = await durable(values.text(news.kept));
      await engine.still();
      engine.told();
      asked.onStatus?.(content);
    } else if (until <= clock.now()) {
      const late = await giveUp(engine, id, delegation);
      if (late !== undefined) return late;
    } else
      await lot.park({
        until,
        ready: () => view.heard.get(id)?.outcome !== undefined || text() !== undefined,
      });
  }
}

/** With a tenth at most. */
function secondsOf(ms: number): number {
  return Math.round(Math.max(0, ms) / 100) / 10;
}

/**
 * Cancels what takes too long, then stores that it did; unless its end has come meanwhile, or that it was accepted, for
 * then it is still to be cancelled.
 */
async function giveUp(
  engine: Engine,
  id: string,
  { child, since, until = since }: Delegation,
): Promise<Done | undefined> {
  const { view, clock, head, writer } = engine;
  const told = view.heard.get(id);
  if (told?.taskId !== undefined)
    await cancel(
      engine,
      cancelMessage(head, { to: child.to, taskId: told.taskId }, told, "it took too long"),
    );
  const ms = Math.max(0, Math.round(clock.now() - since));
  const message = `step ${JSON.stringify(id)}: ${child.to} was not done within ${secondsOf(until - since)} s`;
  const error = { name: DELEGATION_ERROR, code: "timeout", message };
  const changed = () => {
    const now = view.heard.get(id);
    return now?.outcome !== undefined || now?.taskId !== told?.taskId;
  };
  const at = await durable(
    writer.add({ step: { name: id, kind: "delegate", value: { text: "" }, ms, error }, unless: changed }),
  );
  if (!view.steps.has(id)) return undefined;
  // Who says nothing in time has failed as one that says so.
  if (child.bySkill === true) await (await engine.delegating.choosing()).note(child.to, { good: false });
  return { at, error: reviveError(error) };
}
