import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { getObject, STREAMS } from "../../shared/nats/index.ts";
import { type ArtifactRef, taskMessage } from "../../shared/wire/index.ts";
import { SENDER, type Sluice, startSluice } from "../support/sluice.ts";
import { until } from "../support/until.ts";

const MAKER = "acme-maker";
/** What a standard server takes at the most, headers included (NATS docs: max_payload). */
const SERVER_MAX = 1_048_576;

const sha256 = (bytes: Uint8Array | string) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

describe("large messages, results and artifacts", () => {
  let sluice: Sluice;
  before(async () => {
    sluice = await startSluice();
    const jsm = await jetstreamManager(sluice.peer.nc);
    for (const { name } of STREAMS)
      await until(`the bridge makes ${name}`, () => jsm.streams.info(name).catch(() => undefined));
  });
  after(() => sluice.stop());

  const ask = async (skillId: string, a2a: unknown) => {
    const { taskId } = await sluice.peer.ask(MAKER, { channelRef: "maker", skillId, a2a });
    const events = await sluice.peer.outcome(taskId);
    for (const { bytes, event } of events) assert.ok(bytes <= 1_000_000, `${event.kind} of ${bytes} bytes`);
    return events;
  };
  const stored = async (artifact: ArtifactRef | undefined) => {
    assert.ok(artifact);
    const object = await getObject(sluice.peer.nc, artifact.key);
    assert.ok(object);
    assert.equal(object.byteLength, artifact.sizeBytes);
    assert.equal(sha256(object), artifact.digest);
    return object;
  };

  for (const length of [1_000, 300_000, 900_000])
    test(`a message of ${length} bytes is admitted and worked`, async () => {
      const text = "é".repeat(length / 4) + "x".repeat(length / 2);
      const events = await ask("task", text);
      assert.equal(events.at(-1)?.event.content, String(text.length));
    });

  test("the largest message that the server takes is admitted, and one byte more is the server's to refuse", async () => {
    const make = (length: number, messageId: string) =>
      taskMessage({
        from: SENDER,
        to: MAKER,
        messageId,
        request: { a2a: "x".repeat(length), channelRef: "maker", skillId: "task", delivery: {} },
        createdAt: new Date().toISOString(),
      });
    const messageId = "msg_largest";
    const { body: empty, msgId } = make(0, messageId);
    const header = Buffer.byteLength(`NATS/1.0\r\nNats-Msg-Id: ${msgId}\r\n\r\n`);
    const room = SERVER_MAX - header - Buffer.byteLength(empty);
    const { subject, body } = make(room, messageId);
    await sluice.peer.publish(subject, msgId, body);
    const events = await sluice.peer.outcome(sluice.peer.taskId(MAKER, messageId));
    assert.equal(events.at(-1)?.event.content, String(room));

    const over = make(room + 1, "msg_largesu");
    await assert.rejects(sluice.peer.publish(over.subject, over.msgId, over.body));
  });

  test("a task that is sent again once it is over is answered by what is stored", async () => {
    const data = { character: "x", count: 100_000 };
    const asked = await sluice.peer.ask(MAKER, {
      channelRef: "maker",
      skillId: "text",
      a2a: { parts: [{ data }] },
    });
    const events = await sluice.peer.outcome(asked.taskId);
    assert.equal(events.at(-1)?.event.content.length, data.count);
    await sluice.peer.publish(asked.subject, `${asked.msgId}-again`, asked.body);
    const jsm = await jetstreamManager(sluice.peer.nc);
    await until("it is decided", async () => {
      const { num_pending, num_ack_pending } = await jsm.consumers.info("A2A_TASKS", `a2a_tasks_${MAKER}`);
      return num_pending + num_ack_pending === 0;
    });
    assert.deepEqual(await sluice.peer.events(asked.taskId), events);
  });

  test("an artifact of 2 MB comes back whole", async () => {
    const events = await ask("artifact", { message: { parts: [{ data: { bytes: 2_000_000 } }] } });
    const object = await stored(events.find(({ event }) => event.kind === "artifact")?.event.artifact);
    assert.equal(sha256(object), sha256(Buffer.alloc(2_000_000, "0123456789abcdef")));
  });

  for (const [what, character] of [
    ["plain", "x"],
    ["of which every character must be escaped", "\u0001"],
    ["of two bytes a character", "é"],
  ] as const)
    test(`a result text of 3 MB, ${what}, is cut to fit and kept whole`, async () => {
      const data = { character, count: 3_000_000 / Buffer.byteLength(character) };
      const events = await ask("text", { message: { parts: [{ data }] } });
      const result = events.at(-1);
      assert.equal(result?.event.state, "TASK_STATE_COMPLETED");
      assert.ok((result?.bytes ?? 0) > 990_000, `${result?.bytes} bytes`);
      const whole = character.repeat(data.count);
      assert.ok(whole.startsWith(result?.event.content ?? "nothing"));
      const object = await stored(result?.event.result?.artifacts?.[0]);
      assert.equal(Buffer.from(object).toString("utf8") === whole, true);
    });
});
