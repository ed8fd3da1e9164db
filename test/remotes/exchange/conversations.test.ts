import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type {
  Canceled,
  Exchange,
  ObservedData,
  Reply,
  Seen,
  SeenArtifact,
} from "../../../shared/remotes/exchange/index.ts";
import { legacyServer, pollingServer, type RemoteServer, streamingServer } from "../servers/index.ts";
import { allOf, assertFails, collect, idOf, message, never, talk, until } from "./support.ts";

const KINDS = [
  { name: "a streaming agent of A2A 1.0", serve: streamingServer, streams: true, protocol: "1.0" },
  { name: "a polled agent of A2A 1.0", serve: pollingServer, streams: false, protocol: "1.0" },
  { name: "an agent of A2A 0.3", serve: legacyServer, streams: true, protocol: "0.3" },
] as const;

const text = ({ parts }: Pick<SeenArtifact, "parts">) =>
  parts.map((part) => ("text" in part ? part.text : JSON.stringify(part))).join("");

for (const { name, serve, streams, protocol } of KINDS)
  describe(name, () => {
    let server: RemoteServer;
    let exchange: Exchange;
    before(async () => {
      server = await serve();
      exchange = await talk(server);
    });
    after(() => server.close());

    /** Starts a task, and gives it as it is at its end, and what was said on the way. */
    async function ending(script: string, state: Seen["state"]) {
      const started = await exchange.start(message(script), never);
      const said = await allOf(started);
      return { said, last: await until(exchange, idOf(started.seen), state) };
    }

    test("is spoken to as its card says", () => {
      assert.equal(exchange.streams, streams);
      assert.equal(exchange.protocol, protocol);
    });

    test("does a task, and says how far it is", async () => {
      const { said, last } = await ending(
        "working on it\nartifact report two findings\ndata table [1,2]\ncomplete all done",
        "TASK_STATE_COMPLETED",
      );
      assert.equal(last.text, "all done");
      assert.deepEqual(
        last.artifacts.map((of) => [of.id, text(of), of.last]),
        [
          ["report", "two findings", true],
          ["table", JSON.stringify({ data: [1, 2] }), true],
        ],
      );
      if (!streams) return;
      assert.equal(said[0]?.kind, "task");
      assert.deepEqual(
        said.slice(1).map((of) => [of.kind, of.state, of.text, of.artifacts[0]?.id]),
        [
          ["status", "TASK_STATE_WORKING", "on it", undefined],
          ["artifact", undefined, undefined, "report"],
          ["artifact", undefined, undefined, "table"],
          ["status", "TASK_STATE_COMPLETED", "all done", undefined],
        ],
      );
    });

    test("gives an artifact in pieces, and values of extensions apart from it", async () => {
      const { said, last } = await ending(
        'chunk log one \nchunk log two \nlast log three\nobserve cost {"costUsd":0.5}\ncomplete',
        "TASK_STATE_COMPLETED",
      );
      assert.deepEqual(last.artifacts.map(text), ["one two three".replaceAll(" ", "")]);
      const cost: ObservedData = {
        mimeType: "application/vnd.protolabs.cost-v1+json",
        data: { costUsd: 0.5 },
      };
      assert.deepEqual(last.observed, [cost]);
      if (!streams) return;
      const pieces = said.flatMap(({ artifacts }) => artifacts);
      assert.deepEqual(
        pieces.map(({ append, last: end }) => [append, end]),
        [
          [true, false],
          [true, false],
          [true, true],
        ],
      );
    });

    test("gives bytes, and where they are", async () => {
      const { last } = await ending(
        "file img image/png bytes\nlink far https://example.com/x\ncomplete",
        "TASK_STATE_COMPLETED",
      );
      assert.deepEqual(
        last.artifacts.map(({ parts }) => parts),
        [
          [{ raw: Buffer.from("bytes").toString("base64"), mediaType: "image/png" }],
          [{ url: "https://example.com/x" }],
        ],
      );
    });

    for (const [verb, state] of [
      ["ask", "TASK_STATE_INPUT_REQUIRED"],
      ["auth", "TASK_STATE_AUTH_REQUIRED"],
    ] as const)
      test(`asks (${verb}), and goes on with the answer`, async () => {
        const first = message(`${verb} which one?\nartifact chosen {reply}\ncomplete`);
        const { seen, rest } = await exchange.start(first, never);
        const taskId = idOf(seen);
        const asked = await until(exchange, taskId, state);
        assert.equal(asked.text, "which one?");
        await rest?.close();
        const answer: Reply = { ...message("the second"), contextId: first.contextId, taskId };
        const { rest: more } = await exchange.reply(answer, never);
        await more?.close();
        const last = await until(exchange, taskId, "TASK_STATE_COMPLETED");
        assert.deepEqual(last.artifacts.map(text), ["the second"]);
        assert.equal(server.executed(first.messageId), 1);
        assert.equal(server.executed(answer.messageId), 1);
      });

    test("fails and rejects", async () => {
      const { last: failed } = await ending("fail no disk", "TASK_STATE_FAILED");
      assert.equal(failed.text, "no disk");
      const { last: rejected } = await ending("reject not mine", "TASK_STATE_REJECTED");
      assert.equal(rejected.text, "not mine");
    });

    test("answers without a task", async () => {
      const { seen, rest } = await exchange.start(message("message hello"), never);
      assert.equal(seen.kind, "message");
      assert.equal(seen.taskId, undefined);
      assert.equal(seen.text, "hello");
      for await (const more of rest ?? []) assert.fail(`nothing follows: ${more.kind}`);
    });

    test("is told to cancel: canceled, over before, gone, and not at all", async () => {
      const { seen, rest } = await exchange.start(message("never"), never);
      const taskId = idOf(seen);
      const canceled = await exchange.cancel(taskId, never);
      assert.ok(canceled.outcome === "canceled" && canceled.seen.state === "TASK_STATE_CANCELED");
      await rest?.close();
      assert.deepEqual(server.canceled, [taskId]);
      assert.equal((await exchange.cancel(taskId, never)).outcome, "canceled");

      const { last } = await ending("complete", "TASK_STATE_COMPLETED");
      const over: Canceled = await exchange.cancel(idOf(last), never);
      assert.ok(over.outcome === "over" && over.seen.state === "TASK_STATE_COMPLETED");

      assert.deepEqual(await exchange.cancel("nobody", never), { outcome: "gone" });

      const method = protocol === "0.3" ? "tasks/cancel" : "CancelTask";
      server.refuse([method], -32_004);
      assert.deepEqual(await exchange.cancel(idOf(last), never), { outcome: "unsupported" });
      // Not this one, and it is not over.
      server.refuse([method], -32_002);
      const running = await exchange.start(message("never"), never);
      assert.deepEqual(await exchange.cancel(idOf(running.seen), never), { outcome: "unsupported" });
      server.refuse([method]);
      await exchange.cancel(idOf(running.seen), never);
      await running.rest?.close();
    });

    test("has a message, or not, or cannot be asked", async () => {
      const sent = message("artifact a 1\ncomplete");
      const { seen } = await exchange.start(sent, never);
      await until(exchange, idOf(seen), "TASK_STATE_COMPLETED");
      const found = await exchange.find(sent, never);
      const other = await exchange.find({ ...sent, messageId: "m-other" }, never);
      const elsewhere = await exchange.find(message(""), never);
      if (protocol === "0.3") return assert.deepEqual([found, other, elsewhere], Array(3).fill("unknown"));
      assert.ok(typeof found === "object" && found.taskId === seen.taskId);
      assert.equal(found.artifacts.length, 1);
      assert.deepEqual([other, elsewhere], ["none", "none"]);
      server.refuse(["ListTasks"], -32_601);
      assert.equal(await exchange.find(sent, never), "unknown");
      server.refuse(["ListTasks"]);
    });

    test("is followed again after its stream was lost", async () => {
      if (!streams) {
        const { seen } = await exchange.start(message("complete"), never);
        await assertFails(collect(exchange.follow(idOf(seen), never)), "unsupported", {
          sent: false,
        });
        return;
      }
      const sent = message(`working on it\nhold ${protocol}\nartifact a 1\ncomplete`);
      const { seen, rest } = await exchange.start(sent, never);
      const taskId = idOf(seen);
      await until(exchange, taskId, "TASK_STATE_WORKING");
      const reading = collect(rest ?? []);
      server.drop();
      await assertFails(reading, "lost", { sent: true });
      const again: Seen[] = [];
      for await (const more of exchange.follow(taskId, never)) {
        again.push(more);
        server.release(protocol);
      }
      assert.deepEqual([again[0]?.kind, again[0]?.state], ["task", "TASK_STATE_WORKING"]);
      assert.equal(again.at(-1)?.state, "TASK_STATE_COMPLETED");
      assert.equal(server.executed(sent.messageId), 1);
      // Once it is over there is no stream, and the end is told all the same.
      const [over, ...more] = await collect(exchange.follow(taskId, never));
      assert.deepEqual([over?.kind, over?.state, more], ["task", "TASK_STATE_COMPLETED", []]);
    });

    test("is not heard any more once its caller has enough", async () => {
      const stop = new AbortController();
      const { seen, rest } = await exchange.start(message("working on it\nnever"), stop.signal);
      const reading = collect(rest ?? [seen]);
      const enough = new Error("enough");
      stop.abort(enough);
      if (streams) await assert.rejects(reading, enough);
      await assert.rejects(exchange.get(idOf(seen), stop.signal), enough);
      await assert.rejects(exchange.start(message("complete"), stop.signal), enough);
      await exchange.cancel(idOf(seen), never);
    });

    test("has no such task", async () => {
      const error = await assertFails(exchange.get("nobody", never), "not_found");
      assert.equal(error.retryable, false);
      await assertFails(exchange.reply({ ...message("x"), taskId: "nobody" }, never), "not_found");
    });
  });
