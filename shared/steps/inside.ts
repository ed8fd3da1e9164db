import { AsyncLocalStorage } from "node:async_hooks";

/** Whose function runs: a step must not be called there, and chance is drawn on its own account. */
export const inside = new AsyncLocalStorage<{ readonly id: string; turn: number }>();
