/** The functions that speak NATS. */
export const NATS_FUNCTIONS = ["bridge", "admit", "control", "events", "work", "sweep", "cards"] as const;
export type NatsFunction = (typeof NATS_FUNCTIONS)[number];

/**
 * Who else speaks NATS for a deployment: the first task of `npm start`, the command `sluice`, and its verb `erase`, which
 * takes away what is not the deployment's alone.
 */
export const NATS_ROLES = ["start", "command", "erase"] as const;

/** Everybody whose permissions are told. */
export const NATS_USERS = [...NATS_FUNCTIONS, ...NATS_ROLES] as const;
export type NatsUser = (typeof NATS_USERS)[number];

/** What functions, and others who speak for a deployment, may do on NATS. */
export interface NatsPermission {
  readonly kind: "publish" | "subscribe";
  /** With `<runtime>`, `<deployment>` and `<function>` where a deployment's own stand, and NATS's wildcards. */
  readonly subject: string;
  readonly functions: readonly NatsUser[];
  /** What they need it for. */
  readonly why: string;
  /** Only for agents that hand tasks on. */
  readonly delegating?: true;
}

const LAST_READERS = ["admit", "control", "events", "work", "sweep", "command"] as const;
const TELLERS = ["admit", "control", "work", "sweep"] as const;
const CANCELLERS = ["control", "events", "work", "sweep"] as const;
const ARTIFACT_KEEPERS = ["control", "work", "sweep"] as const;
const FOLLOWERS = ["start", "command"] as const;

function publish(
  subject: string,
  functions: readonly NatsUser[],
  why: string,
  delegating?: true,
): NatsPermission {
  return { kind: "publish", subject, functions, why, ...(delegating && { delegating }) };
}

/** By which consumer the functions of a deployment read the bucket of cards, one look after the other. */
export function lookReader(deployment: string): string {
  return `sluice_look_${deployment}`;
}

/**
 * What each needs on NATS, and nothing else (docs/nats.md, "Permissions by function"). A test gives each exactly its own
 * lines, and takes each of a function's away.
 *
 * Whoever reads by an ordered consumer may pull from any of the stream: its name is made anew each time, and a subject's
 * wildcard stands for a whole name (NATS docs: "Subject-Based Messaging"). So that may not be a function's. It may not be
 * deleted by its reader either, who could delete anybody's then; it ends by itself.
 */
export const NATS_PERMISSIONS: readonly NatsPermission[] = [
  publish("$JS.API.STREAM.INFO.A2A_TASKS", ["bridge", "start", "command"], "whether the stream is there"),
  publish("$JS.API.STREAM.INFO.A2A_CONTROLS", ["bridge", "start", "command"], "the same"),
  publish(
    "$JS.API.STREAM.INFO.A2A_EVENTS",
    ["bridge", "events", "start", "command"],
    "the same; how many artifacts came of what was handed on",
  ),
  publish(
    "$JS.API.CONSUMER.INFO.A2A_TASKS.a2a_tasks_<runtime>",
    ["bridge"],
    "whether the durable is there, and as it should be",
  ),
  publish(
    "$JS.API.CONSUMER.INFO.A2A_CONTROLS.a2a_controls_<runtime>",
    ["bridge", "work", "command"],
    "the same; whether an objection may still be unread",
  ),
  publish(
    "$JS.API.CONSUMER.INFO.A2A_EVENTS.a2a_events_<runtime>",
    ["bridge", "command"],
    "the same, for agents that delegate",
    true,
  ),
  publish(
    "$JS.API.CONSUMER.CREATE.A2A_TASKS.a2a_tasks_<runtime>.>",
    ["bridge"],
    "to make the durable, or change it",
  ),
  publish("$JS.API.CONSUMER.CREATE.A2A_CONTROLS.a2a_controls_<runtime>.>", ["bridge"], "the same"),
  publish(
    "$JS.API.CONSUMER.CREATE.A2A_EVENTS.a2a_events_<runtime>.>",
    ["bridge"],
    "the same, for agents that delegate",
    true,
  ),
  publish("$JS.API.CONSUMER.MSG.NEXT.A2A_TASKS.a2a_tasks_<runtime>", ["bridge"], "to pull"),
  publish("$JS.API.CONSUMER.MSG.NEXT.A2A_CONTROLS.a2a_controls_<runtime>", ["bridge"], "to pull"),
  publish(
    "$JS.API.CONSUMER.MSG.NEXT.A2A_EVENTS.a2a_events_<runtime>",
    ["bridge"],
    "to pull, for agents that delegate",
    true,
  ),
  publish("$JS.ACK.A2A_TASKS.a2a_tasks_<runtime>.>", ["bridge", "admit"], "to give back; to settle"),
  publish("$JS.ACK.A2A_CONTROLS.a2a_controls_<runtime>.>", ["bridge", "control"], "the same"),
  publish(
    "$JS.ACK.A2A_EVENTS.a2a_events_<runtime>.>",
    ["bridge", "events"],
    "the same, for agents that delegate",
    true,
  ),
  publish("$JS.API.STREAM.MSG.GET.A2A_TASKS", ["admit", "command"], "bodies over 48 KB"),
  publish("$JS.API.STREAM.MSG.GET.A2A_CONTROLS", ["control", "command"], "bodies over 48 KB"),
  publish("$JS.API.STREAM.MSG.GET.A2A_EVENTS", LAST_READERS, "which event is the last; bodies over 48 KB"),
  publish("a2a.v1.event.<runtime>.>", TELLERS, "events"),
  publish("a2a.v1.task.<runtime>.>", ["work"], "tasks that are handed on", true),
  publish("a2a.v1.control.<runtime>.>", CANCELLERS, "to cancel what was handed on", true),
  publish(
    "sluice.<deployment>.news.*",
    ["control", "events"],
    "to tell a running worker that its task has news",
  ),
  publish("$JS.API.INFO", [...ARTIFACT_KEEPERS, "command", "erase"], "artifacts; how the account stands"),
  publish("$JS.API.STREAM.INFO.OBJ_a2a-artifacts", [...ARTIFACT_KEEPERS, "command", "erase"], "artifacts"),
  publish("$JS.API.STREAM.MSG.GET.OBJ_a2a-artifacts", [...ARTIFACT_KEEPERS, "command", "erase"], "artifacts"),
  publish(
    "$JS.API.STREAM.PURGE.OBJ_a2a-artifacts",
    [...ARTIFACT_KEEPERS, "erase"],
    "an artifact that was written in part, or is erased",
  ),
  publish("$O.a2a-artifacts.>", [...ARTIFACT_KEEPERS, "erase"], "to write artifacts, and to erase them"),
  publish("$JS.API.STREAM.INFO.KV_A2A_PEERS", ["bridge", "cards"], "whether the bucket of cards is there"),
  publish(
    "$JS.API.DIRECT.GET.KV_A2A_PEERS.$KV.A2A_PEERS.<runtime>",
    ["bridge", "cards"],
    "the agents' own cards as they are",
  ),
  publish("$KV.A2A_PEERS.<runtime>", ["bridge", "cards"], "to put them again; to take one away"),
  publish("a2a.v1.heartbeat.<runtime>.>", ["cards"], "signs of life"),
  publish(
    "$JS.API.CONSUMER.CREATE.KV_A2A_PEERS.sluice_look_<deployment>.$KV.A2A_PEERS.>",
    ["cards"],
    "to look who else shows a card",
  ),
  publish("$JS.API.CONSUMER.MSG.NEXT.KV_A2A_PEERS.sluice_look_<deployment>", ["cards"], "the same"),
  publish("$JS.API.CONSUMER.DELETE.KV_A2A_PEERS.sluice_look_<deployment>", ["cards"], "to be done with it"),
  publish(
    "$JS.API.CONSUMER.CREATE.OBJ_a2a-artifacts.>",
    ["work"],
    "to read artifacts of what was handed on",
    true,
  ),
  publish("$JS.FC.OBJ_a2a-artifacts.>", ["work"], "the same, large ones", true),
  publish("$JS.API.CONSUMER.CREATE.OBJ_a2a-artifacts.>", ["command"], "to read artifacts"),
  publish("$JS.FC.OBJ_a2a-artifacts.>", ["command"], "the same, large ones"),
  publish("a2a.v1.task.<deployment>-cli.>", FOLLOWERS, "tasks as the deployment's own requester"),
  publish("a2a.v1.control.<deployment>-cli.>", ["command"], "to answer and cancel them"),
  publish("$JS.API.CONSUMER.CREATE.A2A_EVENTS", FOLLOWERS, "to follow tasks, by an ordered consumer"),
  publish("$JS.API.CONSUMER.MSG.NEXT.A2A_EVENTS.*", FOLLOWERS, "the same"),
  publish("$JS.API.CONSUMER.CREATE.A2A_TASKS", ["command"], "tasks that nobody has answered yet"),
  publish("$JS.API.CONSUMER.MSG.NEXT.A2A_TASKS.*", ["command"], "the same"),
  publish("$JS.API.CONSUMER.INFO.A2A_TASKS.*", ["command"], "whether somebody listens for an agent"),
  publish("$JS.API.CONSUMER.LIST.A2A_TASKS", ["command"], "which agents have listened"),
  publish("$JS.API.STREAM.MSG.GET.KV_A2A_PEERS", ["command"], "an agent's card"),
  publish("$JS.API.CONSUMER.CREATE.KV_A2A_PEERS", ["command"], "the same, of all"),
  publish("$JS.API.CONSUMER.MSG.NEXT.KV_A2A_PEERS.*", ["command"], "the same"),
  publish("$JS.API.STREAM.PURGE.A2A_TASKS", ["erase"], "with `--streams`, a task's messages"),
  publish("$JS.API.STREAM.PURGE.A2A_CONTROLS", ["erase"], "the same"),
  publish("$JS.API.STREAM.PURGE.A2A_EVENTS", ["erase"], "the same"),
  {
    kind: "subscribe",
    subject: "_INBOX_sluice-<deployment>.<function>.>",
    functions: NATS_USERS,
    why: "replies to its own requests, and nobody else's",
  },
  {
    kind: "subscribe",
    subject: "sluice.<deployment>.news.*",
    functions: ["work"],
    why: "news of the task that runs",
  },
  {
    kind: "subscribe",
    subject: "a2a.v1.card.discover",
    functions: ["bridge"],
    why: "questions for the agents' cards",
  },
];

/**
 * What lets the bridge answer whoever asks for cards, on an inbox that nobody knows before: how many messages a question
 * may be answered by, one an agent, and for how long (NATS docs: Authorization, allow_responses).
 */
export const NATS_RESPONSES = { function: "bridge", max: 100, expires: "10s" } as const;

/** Whose permissions are asked for. */
export interface PermissionsOf {
  readonly deployment: string;
  readonly agents: readonly { readonly runtime: string; readonly delegates: boolean }[];
  /** Default: all functions, and nobody else, which is what the one user of a deployment needs. */
  readonly functions?: readonly NatsUser[];
}

/** One subject of a deployment, and why which functions need it. */
export interface NatsGrant extends Pick<NatsPermission, "kind" | "functions" | "why"> {
  readonly subject: string;
  /** The agent it is for, where it is for one. */
  readonly runtime?: string;
}

/** The subjects that functions of a deployment, or others, need, each once, in the order of {@link NATS_PERMISSIONS}. */
export function natsGrants(of: PermissionsOf): NatsGrant[] {
  const grants = new Map<string, NatsGrant>();
  for (const grant of NATS_PERMISSIONS.flatMap((line) => grantsBy(line, of))) {
    const { kind, subject, functions } = grant;
    const known = grants.get(`${kind} ${subject}`) ?? { ...grant, functions: [] };
    grants.set(`${kind} ${subject}`, { ...known, functions: [...known.functions, ...functions] });
  }
  return [...grants.values()];
}

/** Those of one line; none where none of the functions needs it, or no agent. */
export function grantsBy(
  line: NatsPermission,
  { deployment, agents, functions = NATS_FUNCTIONS }: PermissionsOf,
): NatsGrant[] {
  const { kind, why } = line;
  const needing = line.functions.filter((name) => functions.includes(name));
  const served = agents.filter(({ delegates }) => delegates || line.delegating === undefined);
  if (needing.length === 0 || served.length === 0) return [];
  const subject = line.subject.replace("<deployment>", deployment);
  if (subject.includes("<function>"))
    return needing.map((name) => ({
      kind,
      why,
      functions: [name],
      subject: subject.replace("<function>", name),
    }));
  if (!subject.includes("<runtime>")) return [{ kind, why, functions: needing, subject }];
  return served.map(({ runtime }) => ({
    kind,
    why,
    functions: needing,
    runtime,
    subject: subject.replaceAll("<runtime>", runtime),
  }));
}
