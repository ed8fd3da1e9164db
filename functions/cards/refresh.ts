import { nearest } from "../../shared/config/nearest.ts";
import { listed, quoted } from "../../shared/policy/listed.ts";
import type { RefreshResult } from "../../shared/remotes/refresh.ts";
import * as z from "../../shared/zod.ts";
import { type RemotesDeps, refreshNow } from "./remotes.ts";

/**
 * What an operator sends to have cards fetched now: of all remote agents, or of those named. A name is any text: what no
 * remote agent can be called is answered like any other name that nobody has.
 */
const wanted = z.whenUsed(() =>
  z.strictObject({
    refresh: z.union([z.literal("all"), z.array(z.string()).check(z.minLength(1), z.maxLength(100))]),
  }),
);

/** What came of one agent's card. */
export type Refreshed = Pick<RefreshResult, "name" | "outcome" | "added" | "removed" | "warning"> & {
  /** A key that waits to be accepted. */
  readonly offeredKey?: string | undefined;
};

/** What the operator is answered: cards, or why none was asked for. */
export type RefreshAnswer =
  | { readonly refreshed: readonly Refreshed[]; readonly late: readonly string[] }
  | { readonly refused: string };

/**
 * Fetches cards because an operator wants it now.
 *
 * @param event as it came
 * @throws Error when the event is not as expected; whatever the store throws
 */
export async function refreshOnDemand(event: unknown, deps: RemotesDeps): Promise<RefreshAnswer> {
  const { refresh } = z.parse(wanted(), event);
  const names = deps.remotes.map(({ name }) => name);
  const only = new Set(refresh === "all" ? names : refresh);
  const unknown = [...only].filter((name) => !names.includes(name));
  if (unknown.length > 0) return { refused: unknown.map((name) => nobody(name, names)).join("; ") };
  const results = await refreshNow(deps, only);
  const refreshed = results.map(
    ({ name, outcome, added, removed, warning, standing: { offeredKey } }): Refreshed => ({
      ...{ name, outcome, added, removed },
      ...(warning !== undefined && { warning }),
      ...(offeredKey !== undefined && { offeredKey }),
    }),
  );
  const done = new Set(refreshed.map(({ name }) => name));
  return { refreshed, late: [...only].filter((name) => !done.has(name)) };
}

function nobody(name: string, names: readonly string[]): string {
  const meant = nearest(name, names);
  const there = names.length === 0 ? "the deployment names none" : `there are ${listed(names)}`;
  return `no remote agent ${quoted(name)}; ${meant.length === 0 ? there : `did you mean ${meant.join(" or ")}?`}`;
}
