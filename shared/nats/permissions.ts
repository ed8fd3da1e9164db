/** The functions that speak NATS. */
export const NATS_FUNCTIONS = ["bridge", "admit", "control", "events", "work", "sweep", "cards"] as const;
export type NatsFunction = (typeof NATS_FUNCTIONS)[number];

/** What functions may do on NATS. */
export interface NatsPermission {
  readonly kind: "publish" | "subscribe";
  /** With `<runtime>`, `<deployment>` and `<function>` where a deployment's own stand, and NATS's wildcards. */
  readonly subject: string;
  readonly functions: readonly NatsFunction[];
  /** What they need it for. */
  readonly why: string;
  /** Only for agents that hand tasks on. */
  readonly delegating?: true;
}

const STREAM_READERS = ["admit", "control", "events", "work", "sweep"] as const;
const TELLERS = ["admit", "control", "work", "sweep"] as const;
const CANCELLERS = ["control", "events", "work", "sweep"] as const;
const ARTIFACT_KEEPERS = ["control", "work", "sweep"] as const;

function publish(
  subject: string,
  functions: readonly NatsFunction[],
  why: string,
  delegating?: true,
): NatsPermission {
  return { kind: "publish", subject, functions, why, ...(delegating && { delegating }) };
}

/**
 * What the functions need on NATS, and nothing else (docs/nats.md, "Permissions by function"). A test gives each
 * function exactly its own lines, and takes each of them away.
 */
export const NATS_PERMISSIONS: readonly NatsPermission[] = [
  publish("$JS.API.STREAM.INFO.A2A_TASKS", ["bridge"], "whether the stream is there"),
  publish("$JS.API.STREAM.INFO.A2A_CONTROLS", ["bridge"], "the same"),
  publish(
    "$JS.API.STREAM.INFO.A2A_EVENTS",
    ["bridge", "events"],
    "the same; how many artifacts came of what was handed on",
  ),
  publish(
    "$JS.API.CONSUMER.INFO.A2A_TASKS.a2a_tasks_<runtime>",
    ["bridge"],
    "whether the durable is there, and as it should be",
  ),
  publish("$JS.API.CONSUMER.INFO.A2A_CONTROLS.a2a_controls_<runtime>", ["bridge"], "the same"),
  publish(
    "$JS.API.CONSUMER.INFO.A2A_EVENTS.a2a_events_<runtime>",
    ["bridge"],
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
  publish("$JS.API.STREAM.MSG.GET.A2A_TASKS", ["admit"], "bodies over 48 KB"),
  publish("$JS.API.STREAM.MSG.GET.A2A_CONTROLS", ["control"], "bodies over 48 KB"),
  publish("$JS.API.STREAM.MSG.GET.A2A_EVENTS", STREAM_READERS, "which event is the last; bodies over 48 KB"),
  publish("a2a.v1.event.<runtime>.>", TELLERS, "events"),
  publish("a2a.v1.task.<runtime>.>", ["work"], "tasks that are handed on", true),
  publish("a2a.v1.control.<runtime>.>", CANCELLERS, "to cancel what was handed on", true),
  publish(
    "sluice.<deployment>.news.*",
    ["control", "events"],
    "to tell a running worker that its task has news",
  ),
  publish("$JS.API.INFO", ARTIFACT_KEEPERS, "artifacts"),
  publish("$JS.API.STREAM.INFO.OBJ_a2a-artifacts", ARTIFACT_KEEPERS, "artifacts"),
  publish("$JS.API.STREAM.MSG.GET.OBJ_a2a-artifacts", ARTIFACT_KEEPERS, "artifacts"),
  publish("$JS.API.STREAM.PURGE.OBJ_a2a-artifacts", ARTIFACT_KEEPERS, "an artifact that was written in part"),
  publish("$O.a2a-artifacts.>", ARTIFACT_KEEPERS, "to write artifacts"),
  publish("$JS.API.STREAM.INFO.KV_A2A_PEERS", ["cards"], "whether the bucket of cards is there"),
  publish(
    "$JS.API.DIRECT.GET.KV_A2A_PEERS.$KV.A2A_PEERS.<runtime>",
    ["cards"],
    "the agents' own cards as they are",
  ),
  publish("$KV.A2A_PEERS.<runtime>", ["bridge", "cards"], "to put them again; to take one away"),
  publish("a2a.v1.heartbeat.<runtime>.>", ["cards"], "signs of life"),
  publish(
    "$JS.API.CONSUMER.CREATE.OBJ_a2a-artifacts.>",
    ["work"],
    "to read artifacts of what was handed on",
    true,
  ),
  publish("$JS.FC.OBJ_a2a-artifacts.>", ["work"], "the same, large ones", true),
  {
    kind: "subscribe",
    subject: "_INBOX_sluice-<deployment>.<function>.>",
    functions: NATS_FUNCTIONS,
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
  /** Default: all, which is what the one user of a deployment needs. */
  readonly functions?: readonly NatsFunction[];
}

/** One subject of a deployment, and why which functions need it. */
export interface NatsGrant extends Pick<NatsPermission, "kind" | "functions" | "why"> {
  readonly subject: string;
  /** The agent it is for, where it is for one. */
  readonly runtime?: string;
}

/** The subjects that functions of a deployment need, each once, in the order of {@link NATS_PERMISSIONS}. */
export function natsGrants(of: PermissionsOf): NatsGrant[] {
  return NATS_PERMISSIONS.flatMap((line) => grantsBy(line, of));
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
