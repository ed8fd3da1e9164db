import { errorFields } from "../../telemetry/error-fields.ts";
import type { Engine } from "../engine.ts";

/** After how long it is asked again whether everything is heard, in milliseconds; each time twice as long, up to the most. */
const FIRST_LOOK_AGAIN_MS = 1_000;
const MOST_LOOK_AGAIN_MS = 30_000;

/**
 * Whether a silence is one: NATS may hold an objection that nobody of ours has read yet, or may not be reached at all
 * (docs/hitl.md, a veto's window). Asked only after the window, so that all that is on the stream by its end is there.
 */
export class Silence {
  readonly #engine: Engine;
  /** What was handed out when nothing was left on the stream: the silence is one as soon as all up to it is settled. */
  #upTo: number | undefined;
  #warned = false;
  #lookAgainMs = FIRST_LOOK_AGAIN_MS;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** True when every control for the task's agent that was on the stream by now is decided, and in its journal. */
  async isHeard(): Promise<boolean> {
    const { delegating, head } = this.#engine;
    try {
      const { waiting, unsettled, handedOut, settled } = await delegating.messenger.controlsHeard(head.to);
      if (waiting === 0 && unsettled === 0) return true;
      if (waiting === 0) this.#upTo ??= handedOut;
      return this.#upTo !== undefined && settled >= this.#upTo;
    } catch (error) {
      this.#warn(error);
      return false;
    }
  }

  /** Once: a user that may not ask would otherwise keep the task waiting, and nobody would know why. */
  #warn(error: unknown): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#engine.warn(
      "a silence is no approval yet, for NATS does not say what is heard",
      errorFields(error),
    );
  }

  /** When to look again, in milliseconds since 1970. */
  nextLook(): number {
    const at = this.#engine.clock.now() + this.#lookAgainMs;
    this.#lookAgainMs = Math.min(2 * this.#lookAgainMs, MOST_LOOK_AGAIN_MS);
    return Math.min(at, this.#engine.lifeEnd);
  }
}
