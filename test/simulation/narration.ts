/** A line as history.ts tells it: its time, the process, and what that does. */
const SWEEP = /^ *[\d.]+ (sweep\d+) (.*)$/;
/** A sweep asks all parts of the index, one after the other; the first stands for them. */
const FURTHER_SHARD = /^queries due#[^0]/;

/**
 * Tells a history without what says nothing: a sweep that does what the one before it did, with nothing in between, is
 * only counted. A task that is stuck is swept hundreds of times.
 */
export class Narration {
  readonly #say: (line: string) => void;
  /** The sweep that is under way, as long as nothing else happens. */
  #sweep: { readonly name: string; readonly lines: string[]; readonly deeds: string[] } | undefined;
  /** What the sweep before it did; nothing when something has happened since. */
  #before: string | undefined;
  #repeats = 0;

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  readonly tell = (line: string): void => {
    const [, name = "", deed = ""] = SWEEP.exec(line) ?? [];
    if (name !== "" && FURTHER_SHARD.test(deed)) return;
    if (name === "" || (this.#sweep !== undefined && this.#sweep.name !== name)) this.end();
    if (name === "") {
      this.#say(line);
      return;
    }
    this.#sweep ??= { name, lines: [], deeds: [] };
    this.#sweep.lines.push(line);
    this.#sweep.deeds.push(deed);
    if (deed === "is done") this.#done(this.#sweep.deeds.join("\n"));
  };

  /** Nothing follows, or something else. */
  end(): void {
    if (this.#repeats > 0) this.#say(`          … and ${this.#repeats} times more`);
    this.#repeats = 0;
    this.#before = undefined;
    for (const line of this.#sweep?.lines ?? []) this.#say(line);
    this.#sweep = undefined;
  }

  #done(deeds: string): void {
    if (deeds === this.#before) {
      this.#repeats++;
      this.#sweep = undefined;
      return;
    }
    this.end();
    this.#before = deeds;
  }
}
