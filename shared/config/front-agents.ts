import * as z from "zod";
import { type Agent, agentName, type Skill } from "../agents/define.ts";
import { skillsOfFile } from "../remotes/hosted-skills.ts";
import type { Finding } from "./config-error.ts";
import type { Fields } from "./host-agent.ts";
import type { RemoteConfig } from "./remotes.ts";

/** What hosting takes of an agent: those that have a file have more. */
export interface Hostable extends Omit<Agent, "skills"> {
  readonly skills: Readonly<Record<string, Pick<Skill, "name" | "description" | "tags">>>;
  /** Of an agent that is a remote one: that one's name. */
  readonly remote?: string;
}

/** The field that makes an agent of `agents.yaml` a remote one (docs/remotes.md). */
export const REMOTE = "remote";

const empty = z.object({ [REMOTE]: z.null() });

/** The agents whose `remote` is there without a value: left out as what is empty elsewhere, it would be missed as a file. */
export function emptyRemotes(sections: unknown): ReadonlySet<string> {
  const parsed = z.object({ agents: z.record(z.string(), z.unknown()) }).safeParse(sections);
  const entries = Object.entries(parsed.data?.agents ?? {});
  return new Set(entries.flatMap(([id, entry]) => (empty.safeParse(entry).success ? [id] : [])));
}

/**
 * The agents of the operator's file that are remote ones: entries with `remote`, which have no file of their own.
 *
 * @param file.empty as {@link emptyRemotes}: of an agent with a file it means nothing
 * @param remotes the file's; `undefined` if they cannot be read, which is told elsewhere
 * @returns the agents, what is wrong with them, and what of their remotes' skills is left out
 */
export function frontAgents(
  file: {
    readonly agents: Readonly<Record<string, Fields | undefined>>;
    readonly empty: ReadonlySet<string>;
  },
  agents: readonly Pick<Agent, "id">[],
  remotes: readonly RemoteConfig[] | undefined,
): { readonly fronts: readonly Hostable[]; readonly findings: Finding[]; readonly notes: Finding[] } {
  const findings: Finding[] = [];
  const notes: Finding[] = [];
  const isOfFile = (id: string) => agents.some((of) => of.id === id);
  const fronts = Object.entries(file.agents).flatMap(([id, entry = {}]) => {
    const name = file.empty.has(id) && !isOfFile(id) ? "" : entry[REMOTE];
    if (name === undefined) return [];
    const remote = remotes?.find((of) => of.name === name);
    const problem = problemOf({ id, name, remote }, agents, remotes);
    if (problem !== undefined)
      findings.push({ path: ["agents", id, ...problem.path], message: problem.message });
    // What else its entry says is looked at all the same; that of an agent with a file is anyway.
    if (isOfFile(id)) return [];
    const { skills, notes: leftOut } = skillsOfFile(remote ?? { name: String(name), skills: [] });
    const place = remotes === undefined || remote === undefined ? 0 : remotes.indexOf(remote);
    notes.push(...leftOut.map((message) => ({ path: ["remotes", place, "skills"], message })));
    return [frontOf(id, String(name), skills)];
  });
  return { fronts, findings, notes };
}

function problemOf(
  { id, name, remote }: { id: string; name: unknown; remote: RemoteConfig | undefined },
  agents: readonly Pick<Agent, "id">[],
  remotes: readonly RemoteConfig[] | undefined,
): Finding | undefined {
  if (agents.some((of) => of.id === id))
    return {
      path: [REMOTE],
      message: `expected an agent without a file: agents/${id}.ts is there, so that it would be two`,
    };
  const named = agentName.safeParse(id);
  if (!named.success) return { path: [], message: named.error.issues[0]?.message ?? "expected another id" };
  if (typeof name !== "string") return { path: [REMOTE], message: "expected the name of a remote, a text" };
  if (name !== "" && (remote !== undefined || remotes === undefined)) return undefined;
  const known = remotes?.map((of) => of.name).join(", ") ?? "";
  const expected = `expected one of remotes${remotes === undefined ? "" : ` (${known || "there is none"})`}`;
  if (name === "") return { path: [REMOTE], message: `${expected}, it is empty` };
  // What no remote can be called is shown by its shape, as everywhere: it may be long, or hold what a terminal obeys.
  const got = /^[\w-]{1,64}$/.test(name) ? name : `a text of ${name.length} characters`;
  return { path: [REMOTE], message: `${expected}, got ${got}` };
}

function frontOf(id: string, remote: string, skills: ReturnType<typeof skillsOfFile>["skills"]): Hostable {
  return {
    id,
    remote,
    description: `The remote agent ${remote}, asked over A2A.`,
    version: "1.0.0",
    settings: z.strictObject({}),
    skills: Object.fromEntries(skills.map(({ slug, ...of }) => [slug, of])),
  };
}
