import { createHash } from "node:crypto";

/** 53 bits make every double from 0 to 1 that is a multiple of 2^-53. */
const BITS = 53;

function digest(...parts: readonly (string | number)[]): Buffer {
  return createHash("sha256").update(JSON.stringify(parts)).digest();
}

/** A number from 0 to 1, 1 excluded, that follows from its place in the task. */
export function randomOf(taskId: string, place: string, turn: number): number {
  return Number(digest("random", taskId, place, turn).readBigUInt64BE() >> BigInt(64 - BITS)) / 2 ** BITS;
}

/** A UUID of version 8, RFC 9562 §5.8 (made by a rule of one's own), that follows from its place in the task. */
export function uuidOf(taskId: string, place: string, turn: number): string {
  const bytes = digest("uuid", taskId, place, turn).subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
