import { jetstreamManager } from "@nats-io/jetstream";
import { ensureStreams, NatsLink, publishOnStream } from "../../../shared/nats/index.ts";
import { startNats } from "../../support/nats-server.ts";
import { startSilentProxy } from "../../support/silent-proxy.ts";

/** How long a sandbox is taken to have been frozen, in milliseconds. */
const FROZEN_MS = 60_000;

/** What became of the connection while the sandbox was frozen. */
const CASES = ["used a moment ago", "frozen, connection alive", "frozen, connection dead"] as const;

/** How long a sandbox took to publish an event, in milliseconds, once a round. */
export interface Thaws {
  readonly what: (typeof CASES)[number];
  readonly ms: readonly number[];
}

/** Publishes from a sandbox that was not frozen, or frozen and thawed; a dead connection is dead without a word. */
export async function thaws(rounds: number): Promise<Thaws[]> {
  const server = await startNats();
  const proxy = await startSilentProxy(server.url);
  let frozen = 0;
  const settings = { servers: [proxy.url], credentials: "none", name: "sluice-bench.thaw" };
  const link = new NatsLink(
    () => settings,
    () => performance.now() + frozen,
  );
  await ensureStreams(await jetstreamManager(await link.get()));
  let sent = 0;
  const publish = async () => {
    const began = performance.now();
    const msgId = String(++sent);
    const subject = "a2a.v1.event.acme-support.peer.task_1.status";
    await publishOnStream(await link.get(), { subject, msgId, body: "{}" });
    return performance.now() - began;
  };
  const measured = CASES.map((what) => ({ what, ms: [] as number[] }));
  try {
    for (let round = 0; round < rounds; round++)
      for (const { what, ms } of measured) {
        await publish();
        if (what !== "used a moment ago") frozen += FROZEN_MS;
        if (what === "frozen, connection dead") proxy.silence();
        ms.push(await publish());
      }
    return measured;
  } finally {
    await link.close();
    await proxy.stop();
    await server.stop();
  }
}
