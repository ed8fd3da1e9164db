import { type ConsumerInfo, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Timing } from "../../shared/config/timing.ts";
import type { RuntimeConsumers } from "../../shared/nats/index.ts";
import { errorFields, type Telemetry } from "../../shared/telemetry/index.ts";

/** How often the durables are looked at, in milliseconds. */
const LOOK_MS = 30_000;
/** The longest that the server may take to tell of one, in milliseconds. */
const API_TIMEOUT_MS = 5_000;

interface LagDeps {
  readonly telemetry: Telemetry;
  readonly timing: Timing;
}

/**
 * Measures how far the durables lag behind their streams: at once as the run has found them, then every half minute, one
 * request for each. What cannot be told is left out: a bridge that hears nothing is known by its silence.
 *
 * @returns what ends it
 */
export function watchLag(
  nc: NatsConnection,
  deps: LagDeps,
  consumers: readonly RuntimeConsumers[],
): Disposable {
  const known = consumers.flatMap(({ tasks, controls, events }) => [tasks, controls, events ?? []].flat());
  let looking = false;
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = true;
    try {
      tellLag(deps, await read(nc, known));
    } catch (error) {
      deps.telemetry.warn("the durables cannot be looked at", errorFields(error));
    } finally {
      looking = false;
    }
  };
  tellLag(deps, known);
  const timer = setInterval(() => void look(), LOOK_MS / deps.timing.scale).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function read(nc: NatsConnection, known: readonly ConsumerInfo[]): Promise<ConsumerInfo[]> {
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: API_TIMEOUT_MS });
  return Promise.all(known.map(({ stream_name, name }) => jsm.consumers.info(stream_name, name)));
}

/** A durable of which there is nothing to tell is no metric that anybody pays for; the sum is told always. */
function tellLag({ telemetry }: LagDeps, infos: readonly ConsumerInfo[]): void {
  const pending = infos.reduce((sum, { num_pending }) => sum + num_pending, 0);
  telemetry.measure("MessagesPending", pending);
  for (const { name: consumer, num_pending, num_ack_pending, num_redelivered } of infos) {
    if (num_pending > 0) telemetry.measure("ConsumerPending", num_pending, { consumer });
    if (num_ack_pending > 0) telemetry.measure("ConsumerAckPending", num_ack_pending, { consumer });
    if (num_redelivered > 0) telemetry.measure("ConsumerRedelivered", num_redelivered, { consumer });
  }
}
