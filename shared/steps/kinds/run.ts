import type { Attempt, RunOptions } from "../../agents/types.ts";
import { durable } from "../durable.ts";
import { milliseconds } from "../duration.ts";
import type { Done, Engine } from "../engine.ts";
import { StepTimeout } from "../errors.ts";
import { describeError, isFinal, reviveError, type StoredError } from "../failures.ts";
import { inside } from "../inside.ts";
import { fromJson, toJson } from "../json.ts";
import { SHORT_WAIT_MS } from "../lot.ts";
import { pauseMs, retryPolicy } from "../retry.ts";

/** An attempt that begins with less of its invocation's time ahead has not had what an invocation can give. */
const WHOLE = 0.9;

type Fn = (attempt: Attempt) => unknown;

/** How an attempt came out; `cut` by the end of an invocation of which it did not have the whole. */
type Attempted =
  | { readonly kind: "done"; readonly text: string }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "cut" };

/** Tries until an attempt succeeds, or fails for good. */
export async function runStep(engine: Engine, id: string, fn: Fn, options: RunOptions = {}): Promise<Done> {
  const { clock, lot } = engine;
  const policy = retryPolicy(options.retry, id);
  const timeoutMs =
    options.timeout === undefined
      ? Number.POSITIVE_INFINITY
      : milliseconds(options.timeout, `timeout of step ${JSON.stringify(id)}`);
  const open = engine.view.open.get(id);
  let failed = open?.attempts ?? 0;
  if (open?.until !== undefined && open.until > clock.now()) await lot.park({ until: open.until });
  let began = open?.began ?? open?.since;

  for (;;) {
    await engine.begin(id);
    began ??= clock.now();
    const attempted = await attempt(engine, id, fn, failed + 1, timeoutMs);
    await engine.still();
    const ms = Math.max(0, Math.round(clock.now() - began));
    if (attempted.kind === "cut") {
      await lot.park({ until: clock.now(), elsewhere: true });
      continue;
    }
    if (attempted.kind === "done") return await store(engine, id, attempted.text, ms, failed + 1);

    failed++;
    const error = describeError(attempted.error);
    // Its message is the handler's, and may hold what a peer has sent: the requester reads it, logs do not.
    engine.warn("an attempt of a step has failed", { step: id, attempt: failed, errorName: error.name });
    if (failed >= policy.attempts || isFinal(attempted.error))
      return await fail(engine, id, error, ms, failed);
    const pause = pauseMs(policy, failed);
    const until = clock.now() + pause;
    // A short pause is not worth a write; if the worker dies in it, the attempts are counted anew.
    if (pause > SHORT_WAIT_MS || until >= engine.limit)
      await durable(
        engine.writer.add({ open: { name: id, kind: "run", began, until, attempts: failed, error } }),
      );
    await lot.park({ until });
  }
}

async function store(engine: Engine, id: string, text: string, ms: number, attempts: number): Promise<Done> {
  const value = await durable(engine.values.keep(engine.taskId, text));
  const step = { name: id, kind: "run" as const, value, ms, ...(attempts > 1 && { attempts }) };
  const at = await durable(engine.writer.add({ step }));
  engine.measureStep(id, ms, attempts);
  return { at, value: fromJson(text) };
}

async function fail(
  engine: Engine,
  id: string,
  error: StoredError,
  ms: number,
  attempts: number,
): Promise<Done> {
  const step = { name: id, kind: "run" as const, value: { text: "" }, ms, error };
  const at = await durable(engine.writer.add({ step: { ...step, ...(attempts > 1 && { attempts }) } }));
  engine.measureStep(id, ms, attempts);
  return { at, error: reviveError(error) };
}

/** Runs the function once, for as long as its timeout and the invocation allow. */
async function attempt(
  { clock, signal, startedAt, limit }: Engine,
  id: string,
  fn: Fn,
  number: number,
  timeoutMs: number,
): Promise<Attempted> {
  const started = clock.now();
  const own = new AbortController();
  const over = () => {
    // A function that ignores its signal may never come back, and would keep the timer.
    forget();
    own.abort(signal.reason);
  };
  signal.addEventListener("abort", over, { once: true });
  const cut = Promise.withResolvers<Attempted>();
  const leftMs = Math.max(0, limit - started);
  const forget = clock.timer(Math.min(timeoutMs, leftMs), () => {
    const whole = leftMs >= (limit - startedAt) * WHOLE;
    const error = new StepTimeout(
      timeoutMs <= leftMs
        ? `step ${JSON.stringify(id)}: expected an attempt to take at most ${timeoutMs / 1_000} s`
        : `step ${JSON.stringify(id)}: expected an attempt to end within its invocation, which left it ${Math.round(leftMs / 1_000)} s; divide it into several steps`,
    );
    own.abort(error);
    cut.resolve(timeoutMs <= leftMs || whole ? { kind: "failed", error } : { kind: "cut" });
  });
  const ran = inside.run({ id, turn: 0 }, async (): Promise<Attempted> => {
    try {
      const result = await fn({ signal: own.signal, attempt: number });
      return { kind: "done", text: toJson(result, `the result of step ${JSON.stringify(id)}`) };
    } catch (error) {
      return { kind: "failed", error };
    }
  });
  try {
    return await Promise.race([ran, cut.promise]);
  } finally {
    forget();
    signal.removeEventListener("abort", over);
  }
}
