import { parentPort } from "node:worker_threads";
import { MAX_RECORD_BYTES } from "../../../shared/cards/bucket-facts.ts";
import { MAX_LOOKED_AT } from "../../../shared/cards/look-through.ts";
import { afterLook } from "../../../shared/cards/peer-look.ts";

/** Looks at as many records as a look reads, each nearly as large as one may be, and says how many are kept. */

const at = Date.UTC(2030, 0, 1);
const skills = (id: string) =>
  Array.from({ length: 300 }, (_, n) => ({ id: `${id}/s${n}`, description: "d".repeat(120), tags: ["a"] }));
const entries = Array.from({ length: MAX_LOOKED_AT }, (_, n) => {
  const key = `peer-${n}`;
  const supportedInterfaces = [{ url: "", protocolBinding: "NATS", protocolVersion: "1.0" }];
  const card = { name: key, version: "1", supportedInterfaces, skills: skills(key) };
  const bytes = Buffer.from(JSON.stringify({ agentId: key, card }));
  if (bytes.byteLength > MAX_RECORD_BYTES) throw new Error(`a record of ${bytes.byteLength} bytes`);
  return { key, at, bytes };
});
const { put } = afterLook(new Map(), { lookedAt: 0, sightings: [], amiss: [] }, { at, entries });
parentPort?.postMessage(put.length);
