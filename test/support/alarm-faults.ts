import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { MAX_RECORD_BYTES, PEERS_STREAM } from "../../shared/cards/bucket-facts.ts";
import type { AlarmStage, Fault } from "./alarm-stage.ts";
import { until } from "./until.ts";

/** Streams of NATS that do not take what they should. */

/** Events' stream takes none. */
export function full(alarms: AlarmStage): Fault {
  const { stage } = alarms;
  const jsm = jetstreamManager(stage.sluice.peer.nc);
  const gate = join(stage.sluice.dataDir, "stream-gate");
  let taskId = "";
  return {
    raises: ["events-unpublished"],
    async begin() {
      ({ taskId } = await stage.step({ steps: 1, gate, artifact: false }));
      await until("its step runs", () => stage.traces(taskId).length > 0);
      const { streams } = await jsm;
      const { state } = await streams.info("A2A_EVENTS");
      await streams.update("A2A_EVENTS", { max_msgs: state.messages });
      writeFileSync(gate, "");
    },
    each: () => alarms.measured("UnpublishedAge", { service: "work" }),
    async mend() {
      await (await jsm).streams.update("A2A_EVENTS", { max_msgs: -1 });
      await stage.over(taskId);
    },
  };
}

/** The bucket of cards takes none as large as the largest. */
export function confined(alarms: AlarmStage): Fault {
  const { stage } = alarms;
  const streams = jetstreamManager(stage.sluice.peer.nc).then((jsm) => jsm.streams);
  const take = async (max_msg_size: number) => (await streams).update(PEERS_STREAM, { max_msg_size });
  return {
    raises: ["cards-stale"],
    async begin() {
      const { state } = await (await streams).info(PEERS_STREAM, { subjects_filter: ">" });
      const cards = Object.keys(state.subjects ?? {}).map(async (last_by_subj) =>
        (await streams).getMessage(PEERS_STREAM, { last_by_subj }),
      );
      await take(Math.max(...(await Promise.all(cards)).map((card) => card?.data.length ?? 0)) - 1);
    },
    async each() {
      await stage.sluice.host.invoke("cards", {});
      await alarms.measured("CardAge", { service: "cards" });
    },
    mend: () => take(MAX_RECORD_BYTES),
  };
}
