import { durable } from "../durable.ts";
import type { Done, Engine } from "../engine.ts";

/**
 * Waits until a time. That it waits is stored, and with it the time; that it is over needs no write, for time does not
 * go back.
 *
 * @param untilOf the time as it is asked for now, in milliseconds since 1970
 */
export async function sleepStep(engine: Engine, id: string, untilOf: (now: number) => number): Promise<Done> {
  let until = engine.view.open.get(id)?.until;
  if (until === undefined) {
    const now = engine.clock.now();
    until = untilOf(now);
    if (until < now) return { at: until, value: undefined };
    await engine.begin(id);
    await durable(engine.writer.add({ open: { name: id, kind: "sleep", until } }));
  }
  if (until > engine.clock.now()) await engine.lot.park({ until });
  return { at: until, value: undefined };
}
