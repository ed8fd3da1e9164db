import type {
  Canceled,
  Exchange,
  Outgoing,
  Reply,
  Seen,
  SeenArtifact,
  Started,
} from "../../../../shared/remotes/exchange/index.ts";
import { RemoteError, type RemoteErrorCode } from "../../../../shared/remotes/exchange/index.ts";
import type { TaskState } from "../../../../shared/wire/index.ts";

/** What the fake agent does next: something that it says, or a stop until it is looked at again. */
export type Act =
  | { readonly state: TaskState; readonly text?: string }
  | { readonly artifact: SeenArtifact }
  | "wait";

export const working = (text: string): Act => ({ state: "TASK_STATE_WORKING", text });
export const completed = (text = ""): Act => ({ state: "TASK_STATE_COMPLETED", text });
export const asked = (text: string): Act => ({ state: "TASK_STATE_INPUT_REQUIRED", text });
export const authAsked = (text: string): Act => ({ state: "TASK_STATE_AUTH_REQUIRED", text });
export const artifact = (id: string, text: string, of: Partial<SeenArtifact> = {}): Act => ({
  artifact: { id, parts: [{ text }], append: false, last: true, ...of },
});
export const failing = (code: RemoteErrorCode, sent: boolean) =>
  new RemoteError(code, "fake", `fails as ${code}`, { sent });

interface FakeTask {
  readonly id: string;
  readonly contextId: string;
  readonly messages: Outgoing[];
  acts: Act[];
  state: TaskState;
  text: string;
  messageId: string;
  artifacts: Map<string, SeenArtifact>;
}

/** An agent in memory that does the acts of its script, and notes down what it executes. */
export class FakeRemote implements Exchange {
  readonly protocol = "1.0";
  streams = false;
  /** Whether messages can be looked for. */
  listed = true;
  /** What the next calls throw, by what is called, before anything is done. */
  readonly fails: {
    readonly at: "start" | "reply" | "find" | "get" | "cancel";
    readonly error: Error;
    readonly after?: boolean;
  }[] = [];
  readonly executions: Outgoing[] = [];
  readonly cancels: string[] = [];
  readonly calls: string[] = [];
  readonly tasks = new Map<string, FakeTask>();
  readonly #script: readonly Act[];
  #said = 0;

  constructor(script: readonly Act[]) {
    this.#script = script;
  }

  async start(of: Outgoing): Promise<Started> {
    const after = this.#call("start");
    this.executions.push(of);
    const id = `remote-${this.tasks.size + 1}`;
    const task: FakeTask = {
      id,
      contextId: of.contextId,
      messages: [of],
      acts: [...this.#script],
      state: "TASK_STATE_SUBMITTED",
      text: "",
      messageId: "",
      artifacts: new Map(),
    };
    this.tasks.set(id, task);
    after();
    return this.#started(task);
  }

  async reply(of: Reply): Promise<Started> {
    const after = this.#call("reply");
    this.executions.push(of);
    const task = this.#task(of.taskId);
    task.messages.push(of);
    task.state = "TASK_STATE_WORKING";
    task.text = "";
    after();
    return this.#started(task);
  }

  async find({ contextId, messageId }: Pick<Outgoing, "contextId" | "messageId">) {
    this.#call("find")();
    if (!this.listed) return "unknown" as const;
    for (const task of this.tasks.values())
      if (task.contextId === contextId && task.messages.some((of) => of.messageId === messageId))
        return this.#snapshot(task);
    return "none" as const;
  }

  async get(taskId: string): Promise<Seen> {
    this.#call("get")();
    const task = this.#task(taskId);
    // What is done between two looks.
    for (const _ of this.#until(task)) {
      // It is in the snapshot.
    }
    return this.#snapshot(task);
  }

  async *follow(): AsyncIterable<Seen> {}

  async cancel(taskId: string): Promise<Canceled> {
    this.#call("cancel")();
    this.cancels.push(taskId);
    const task = this.#task(taskId);
    task.state = "TASK_STATE_CANCELED";
    return { outcome: "canceled", seen: this.#snapshot(task) };
  }

  #call(at: FakeRemote["fails"][number]["at"]): () => void {
    this.calls.push(at);
    const hit = this.fails.findIndex((of) => of.at === at);
    const [failure] = hit === -1 ? [] : this.fails.splice(hit, 1);
    if (failure !== undefined && failure.after !== true) throw failure.error;
    return () => {
      if (failure !== undefined) throw failure.error;
    };
  }

  #task(id: string): FakeTask {
    const task = this.tasks.get(id);
    if (task === undefined) throw failing("not_found", true);
    return task;
  }

  #started(task: FakeTask): Started {
    const seen = this.#snapshot(task);
    if (!this.streams) return { seen };
    const events = this.#until(task);
    return {
      seen,
      rest: {
        [Symbol.asyncIterator]: () => ({ next: async () => events.next() }),
        close: async () => {},
      },
    };
  }

  /** Does what is to be done until it waits, asks or is over. */
  *#until(task: FakeTask): Generator<Seen, undefined> {
    for (;;) {
      const act = task.acts[0];
      const still = !["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].includes(task.state);
      if (act === undefined || still) return undefined;
      task.acts.shift();
      if (act === "wait") return undefined;
      yield this.#do(task, act);
    }
  }

  #do(task: FakeTask, act: Exclude<Act, "wait">): Seen {
    const { id: taskId, contextId } = task;
    if ("artifact" in act) {
      const { id, parts, append } = act.artifact;
      const before = append ? (task.artifacts.get(id)?.parts ?? []) : [];
      task.artifacts.set(id, { ...act.artifact, parts: [...before, ...parts] });
      return { kind: "artifact", taskId, contextId, artifacts: [act.artifact], observed: [] };
    }
    task.state = act.state;
    task.text = act.text ?? "";
    task.messageId = `said-${++this.#said}`;
    return { ...this.#snapshot(task), kind: "status", artifacts: [] };
  }

  #snapshot({ id: taskId, contextId, state, text, messageId, artifacts }: FakeTask): Seen {
    const says = text === "" ? {} : { text, message: { messageId, text, parts: [{ text }] } };
    const all = [...artifacts.values()].map((of) => ({ ...of, append: false }));
    return { kind: "task", taskId, contextId, state, ...says, artifacts: all, observed: [] };
  }
}
