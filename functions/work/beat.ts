import type { Clock } from "../../shared/tasks/clock.ts";

/**
 * Shows regularly that a worker lives, one beat at a time. A beat that cannot be written is tried again at the next
 * turn: the journal, not the beat, keeps others out.
 *
 * @param options.lost called once when the claim is no longer in force
 */
export function keepBeating(options: {
  clock: Clock;
  everyMs: number;
  beat: () => Promise<boolean>;
  lost: () => void;
}): { stop: () => Promise<void> } {
  const { clock, everyMs, beat, lost } = options;
  let under: Promise<void> | undefined;
  let stopped = false;
  let forget = clock.timer(everyMs, turn);

  function turn(): void {
    forget = clock.timer(everyMs, turn);
    under ??= beat()
      .then((held) => {
        if (held || stopped) return;
        forget();
        lost();
      })
      .catch(() => {})
      .finally(() => {
        under = undefined;
      });
  }

  return {
    async stop() {
      stopped = true;
      forget();
      await under;
    },
  };
}
