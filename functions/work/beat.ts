/**
 * Shows regularly that a worker lives, one beat at a time. A beat that cannot be written is tried again at the next
 * turn: the journal, not the beat, keeps others out.
 *
 * @param options.lost called once when the claim is no longer in force
 */
export function keepBeating(options: { everyMs: number; beat: () => Promise<boolean>; lost: () => void }): {
  stop: () => Promise<void>;
} {
  let under: Promise<void> | undefined;
  const timer = setInterval(() => {
    under ??= options
      .beat()
      .then((held) => {
        if (held) return;
        clearInterval(timer);
        options.lost();
      })
      .catch(() => {})
      .finally(() => {
        under = undefined;
      });
  }, options.everyMs);
  return {
    async stop() {
      clearInterval(timer);
      await under;
    },
  };
}
