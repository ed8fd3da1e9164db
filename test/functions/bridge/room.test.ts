import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { Room } from "../../../functions/bridge/room.ts";

function room(limit: number, measurements: (number | Error)[]) {
  const errors: unknown[] = [];
  let measured = 0;
  const measure = async () => {
    const next = measurements[Math.min(measured++, measurements.length - 1)];
    if (next instanceof Error || next === undefined) throw next;
    return next;
  };
  return {
    room: new Room({ limit, measure, onError: (error) => errors.push(error) }),
    errors,
    measured: () => measured,
  };
}

test("nothing is granted before the queue was measured, then up to the limit and not one more", async () => {
  const { room: of, measured } = room(10, [3, 10]);
  assert.equal(await of.take(4), 4);
  assert.equal(measured(), 1);
  assert.equal(await of.take(100), 3);
  const waiting = of.take(1);
  assert.equal(await Promise.race([waiting, turn("none")]), "none");
  of.release(1);
  assert.equal(await waiting, 1);
  of.close();
});

test("what was sent counts until a measurement that began later", async () => {
  const { room: of } = room(10, [0, 8, 8]);
  assert.equal(await of.take(10), 10);
  for (let i = 0; i < 8; i++) of.sent();
  const waiting = of.take(5);
  assert.equal(await Promise.race([waiting, turn("none")]), "none");
  of.release(2);
  assert.equal(await waiting, 2);
  of.close();
});

test("room is granted in the order of asking", async () => {
  const { room: of } = room(4, [0]);
  assert.equal(await of.take(4), 4);
  const order: string[] = [];
  const waiting = ["a", "b", "c"].map((name) => of.take(2).then(() => order.push(name)));
  for (let i = 0; i < 4; i++) of.sent();
  await Promise.race([Promise.all(waiting.slice(0, 2)), turn()]);
  await waiting[0];
  await waiting[1];
  assert.deepEqual(order, ["a", "b"]);
  of.close();
  await waiting[2];
});

test("while nothing comes the queue is not measured again", async () => {
  const { room: of, measured } = room(100, [0]);
  for (let i = 0; i < 50; i++) {
    assert.equal(await of.take(10), 10);
    of.release(10);
  }
  assert.equal(measured(), 1);
  of.close();
});

test("a measurement that fails is told and repeated", async () => {
  const { room: of, errors, measured } = room(10, [new Error("gone"), new Error("gone"), 0]);
  assert.equal(await of.take(1), 1);
  assert.deepEqual([errors.length, measured()], [2, 3]);
  of.close();
});

test("a closed room grants nothing, to those who wait either", async () => {
  const { room: of } = room(1, [1]);
  const waiting = of.take(1);
  await turn();
  of.close();
  assert.deepEqual([await waiting, await of.take(1)], [0, 0]);
});
