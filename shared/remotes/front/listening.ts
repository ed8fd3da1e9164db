import type { Seen, Started } from "../exchange/index.ts";
import { Gathered } from "./artifacts.ts";
import type { Front } from "./front.ts";
import { GROWING_MS, SILENCE_MS, STREAM_MS } from "./limits.ts";
import { Live } from "./live.ts";
import { asks, isOver, type Told, type Trouble } from "./told.ts";

/** What came of what was seen is put together from here. */
const NOTHING: Told = { artifacts: [], observed: [] };

/**
 * What a remote has told of a task so far. All of it but a stream that is open is what was stored ({@link Listening.take}), and
 * so the same when the handler is run again.
 */
export class Listening {
  readonly gathered = new Gathered();
  readonly #front: Front;
  /** Told of each text about the progress while a stream is read. */
  readonly #progress: (text: string) => void;
  #told: Told = NOTHING;
  #live: Live | undefined;

  constructor(of: { front: Front; progress: (text: string) => void }) {
    this.#front = of.front;
    this.#progress = of.progress;
  }

  /** How it stands. */
  get told(): Told {
    return this.#told;
  }

  /** Takes in what is stored, now or by an earlier run. @returns whether it tells anything new */
  take(told: Told): boolean {
    for (const artifact of told.artifacts) this.gathered.gave(artifact);
    const isNews = told.says !== undefined || told.artifacts.length > 0 || told.state !== this.#told.state;
    const says = told.says ?? this.#told.says;
    this.#told = says === undefined ? told : { ...told, says };
    return isNews && told.trouble === undefined;
  }

  /** What is to be stored of an answer to a message. Its stream is read on by {@link Listening.readOn}. */
  async started({ seen, rest }: Started): Promise<Told> {
    await this.close();
    const until = this.#front.now() + STREAM_MS / this.#front.scale;
    if (rest !== undefined) this.#live = new Live(rest, until);
    return await this.seen(seen);
  }

  /** What is to be stored of what was seen. */
  async seen(seen: Seen): Promise<Told> {
    const told = this.#absorbed(this.unchanged(), seen);
    if (this.#live === undefined || isOver(told) || asks(told)) return await this.#left(told);
    return this.#withNews(told, true);
  }

  /** What is to be stored of an exchange that has come to nothing. */
  failed(trouble: Trouble): Told {
    return { ...this.unchanged(), trouble };
  }

  /** How it stands where nothing new is known. */
  unchanged(): Told {
    return { ...this.#carried(), ...NOTHING };
  }

  /**
   * Reads the stream until there is something that must be stored, or nothing comes. One that was another run's is over.
   *
   * @returns what is to be stored of it
   */
  async readOn(): Promise<Told> {
    const live = this.#live;
    if (live === undefined) return await this.#left(this.unchanged());
    const { now, scale } = this.#front;
    let told = this.unchanged();
    let flushAt = Number.POSITIVE_INFINITY;
    for (;;) {
      const next = await live.next(Math.min(SILENCE_MS / scale, live.until - now(), flushAt - now()));
      if (next === "silent" && now() >= flushAt && now() < live.until) return this.#withNews(told, true);
      if (next === "silent" || next === "over") return await this.#left(told);
      told = this.#absorbed(told, next.seen);
      if (isOver(told) || asks(told)) return await this.#left(told);
      if (next.seen.artifacts.some(({ last }) => last)) return this.#withNews(told, true);
      if (next.seen.kind === "artifact") flushAt = Math.min(flushAt, now() + GROWING_MS / scale);
    }
  }

  /** Lets go of the stream. */
  async close(): Promise<void> {
    const live = this.#live;
    this.#live = undefined;
    await live?.close();
  }

  async #left(told: Told): Promise<Told> {
    await this.close();
    return this.#withNews(told, false);
  }

  #withNews(told: Told, live: boolean): Told {
    return { ...told, artifacts: this.gathered.news(), ...(live && { live: true }) };
  }

  #absorbed(told: Told, seen: Seen): Told {
    const { taskId = told.taskId, contextId = told.contextId, state = told.state, kind } = seen;
    for (const artifact of seen.artifacts)
      this.gathered.take(kind === "task" ? { ...artifact, append: false } : artifact);
    const text = seen.text && { text: seen.text, parts: [{ text: seen.text }] };
    const says = seen.message ?? (text || undefined);
    const isNew = says !== undefined && (says.text !== this.#told.says?.text || state !== this.#told.state);
    const onWay =
      kind === "status" && !isOver({ ...(state && { state }) }) && !asks({ ...(state && { state }) });
    if (isNew && onWay) this.#progress(says.text);
    return {
      ...told,
      ...(taskId !== undefined && { taskId }),
      ...(contextId !== undefined && { contextId }),
      ...(state !== undefined && { state }),
      ...(says !== undefined && (isNew || kind === "message") && { says }),
      ...(kind === "message" && { whole: true }),
      observed: [...told.observed, ...seen.observed],
    };
  }

  /** What goes along from one exchange to the next. */
  #carried(): Pick<Told, "taskId" | "contextId" | "state"> {
    const { taskId, contextId, state } = this.#told;
    return {
      ...(taskId !== undefined && { taskId }),
      ...(contextId !== undefined && { contextId }),
      ...(state !== undefined && { state }),
    };
  }
}
