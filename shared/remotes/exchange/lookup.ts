import type { ListTasksRequest } from "@a2a-js/sdk";
import { RemoteError } from "./errors.ts";
import { MAX_LOOKUP_HISTORY, MAX_LOOKUP_PAGES } from "./limits.ts";
import { readPage, type TaskPage } from "./seen.ts";
import type { Outgoing, Seen } from "./types.ts";

interface Lookup {
  readonly remote: string;
  readonly list: (request: ListTasksRequest) => Promise<unknown>;
  readonly get: (taskId: string) => Promise<Seen>;
}

/** Tasks of a page; a conversation of ours has one as a rule. */
const PAGE_SIZE = 50;

/**
 * Looks through the tasks of a conversation for a message (A2A 1.0 §3.1.4).
 *
 * @returns its task; `none` when no task has it; `unknown` when that cannot be told: there is no list, or it shows too little
 * @throws RemoteError when the agent cannot be asked now, or answers with what is no list
 */
export async function findMessage(
  { contextId, messageId }: Pick<Outgoing, "contextId" | "messageId">,
  lookup: Lookup,
): Promise<Seen | "none" | "unknown"> {
  let pageToken = "";
  let whole = true;
  for (let page = 0; page < MAX_LOOKUP_PAGES; page++) {
    const found = await pageOf(lookup, contextId, pageToken);
    if (found === undefined) return "unknown";
    const own = found.tasks.filter((task) => (task.contextId ?? contextId) === contextId);
    const task = own.find(({ history }) => history.includes(messageId));
    if (task !== undefined) return lookup.get(task.id);
    // A task that shows no messages, or not the oldest ones, may have it all the same.
    whole &&= own.every(({ history }) => history.length > 0 && history.length < MAX_LOOKUP_HISTORY);
    pageToken = found.nextPageToken;
    if (pageToken === "") return whole ? "none" : "unknown";
  }
  return "unknown";
}

/** Nothing when the agent has no lists, or one that is larger than we read. */
async function pageOf(
  { remote, list }: Lookup,
  contextId: string,
  pageToken: string,
): Promise<TaskPage | undefined> {
  const request = {
    tenant: "",
    contextId,
    status: 0,
    pageSize: PAGE_SIZE,
    pageToken,
    historyLength: MAX_LOOKUP_HISTORY,
    statusTimestampAfter: undefined,
    includeArtifacts: false,
  };
  try {
    const read = readPage(await list(request));
    if (read.ok) return read.value;
    throw new RemoteError("protocol", remote, `what it answers is no A2A: ${read.reason}`, { sent: true });
  } catch (error) {
    const unanswerable = error instanceof RemoteError && ["unsupported", "too_large"].includes(error.code);
    if (unanswerable) return undefined;
    throw error;
  }
}
