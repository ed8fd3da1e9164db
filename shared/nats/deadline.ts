/**
 * The outcome of a promise if it comes in time, `undefined` otherwise. The client has calls without a deadline of
 * their own (`flush`, `close`): on a connection whose other end is gone without a word they never settle.
 *
 * @param promise a late rejection of it is swallowed
 * @param ms milliseconds to wait
 */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  promise.catch(() => undefined);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
