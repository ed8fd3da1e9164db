import { AsyncLocalStorage } from "node:async_hooks";
import { errorFields, type Telemetry } from "../../shared/telemetry/index.ts";

/** Whose code is running: what is to be told of an error that nobody catches. Timers and promises inherit it. */
const author = new AsyncLocalStorage<(error: unknown) => void>();

/** Runs a handler so that an error which it leaves to nobody, in a timer or a forgotten promise, is its own. */
export function ownStrays<T>(blame: (error: unknown) => void, handler: () => T): T {
  return author.run(blame, handler);
}

/**
 * Gives errors that nobody catches to the task whose handler has caused them, if it is still there. Lambda would end
 * the process, and with it the work on another task that happens to run in the same sandbox by then.
 */
export function watchStrays(telemetry: Pick<Telemetry, "error">): void {
  const take = (error: unknown) => {
    const blame = author.getStore();
    const { errorName } = errorFields(error);
    telemetry.error("an error that nobody caught", { errorName, ofHandler: blame !== undefined });
    if (blame === undefined) process.exit(1);
    blame(error);
  };
  process.setUncaughtExceptionCaptureCallback(take);
  // The runtime's own listener ends the process whoever else listens.
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", take);
}
