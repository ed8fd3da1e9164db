import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import type { RemoteErrorCode, Rest } from "../../../shared/remotes/exchange/index.ts";
import { sendJson } from "../servers/index.ts";
import { artifact, begin, event, liar, status, task } from "./liar.ts";
import { allOf, assertFails, collect, message, never, talk } from "./support.ts";

const server = await liar();
after(() => server.close());
const anew = (limits = {}) => talk(server, { card: false, remote: { streaming: true }, limits });
const get = async () => (await anew()).get("t1", never);
const polled = async () => (await anew()).start(message("x", { stream: false }), never);
const streamed = async (limits = {}) => allOf(await (await anew(limits)).start(message("x"), never));

describe("answers", () => {
  test("that are no JSON, no object, nested too deep, or of another type are no A2A", async () => {
    server.body("<html>SECRET</html>", "text/html");
    await assertFails(get(), "protocol", { sent: true, message: /text\/html/ });
    for (const body of ["SECRET", "", "null", "[]", '"SECRET"', "12", "{", "\uFFFE"]) {
      server.body(body);
      await assertFails(get(), "protocol", { sent: true });
      await assertFails(polled(), "protocol", { sent: true });
    }
    const deep = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
    const nested = (levels: number) =>
      server.says((_, response, id) =>
        response
          .writeHead(200, { "content-type": "application/json" })
          .end(`{"jsonrpc":"2.0","id":${id},"result":{"id":"t1","metadata":{"x":${deep(levels)}}}}`),
      );
    nested(125);
    assert.equal((await get()).taskId, "t1");
    nested(126);
    await assertFails(get(), "too_large");
  });

  test("with a number that JSON cannot hold again are no A2A", async () => {
    const says = (number: string) =>
      server.says((_, response, id) =>
        response
          .writeHead(200, { "content-type": "application/json" })
          .end(
            `{"id":${id},"jsonrpc":"2.0","result":{"id":"t1","artifacts":[{"artifactId":"a","parts":[{"data":{"x":[${number}]}}]}]}}`,
          ),
      );
    says("1e308");
    assert.deepEqual((await get()).artifacts[0]?.parts, [{ data: { x: [1e308] } }]);
    for (const number of ["1e999", "-1e999"]) {
      says(number);
      await assertFails(get(), "protocol", { sent: true, message: /numbers/ });
    }
  });

  test("that are JSON-RPC and not A2A are told by their field", async () => {
    for (const [result, field] of [
      [{}, /task\.id/],
      [{ id: "" }, /task\.id/],
      [{ id: "a\u0000b" }, /task\.id/],
      [{ id: "x".repeat(257) }, /task\.id/],
      [task("SECRET"), /task\.status\.state/],
      [task("WORKING", { artifacts: [{ parts: [] }] }), /task\.artifacts\.0\.artifactId/],
      [task("WORKING", { artifacts: [{ artifactId: "a", parts: [null] }] }), /no A2A/],
    ] as const) {
      server.result(result);
      await assertFails(get(), "protocol", { sent: true, message: field });
    }
    server.result({ SECRET: 1 });
    await assertFails(polled(), "protocol", { sent: true });
    server.says((_, response, id) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ id, result: task("WORKING") })),
    );
    await assertFails(get(), "protocol");
  });

  test("what is unknown is left out, and ids, names and texts may be as long as they may be", async () => {
    const long = "n".repeat(300);
    server.result(
      task("WORKING", {
        id: "t1",
        future: 1,
        artifacts: [
          { artifactId: "x".repeat(256), name: long, parts: [{ future: 1 }, { text: "a", filename: long }] },
        ],
      }),
    );
    const [of] = (await get()).artifacts;
    assert.equal(of?.name?.length, 255);
    assert.deepEqual(of?.parts, [{ text: "a", filename: long.slice(0, 255) }]);
    server.result({ id: "t1" });
    assert.equal((await get()).state, undefined, "an agent that does not say is not made to have said");
  });

  test("parts and artifacts are counted", async () => {
    const parts = (count: number) => Array(count).fill({ text: "" });
    const artifacts = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ artifactId: `a${at}`, parts: [] }));
    server.result(task("WORKING", { artifacts: [{ artifactId: "a", parts: parts(1_000) }] }));
    assert.equal((await get()).artifacts[0]?.parts.length, 1_000);
    server.result(task("WORKING", { artifacts: [{ artifactId: "a", parts: parts(1_001) }] }));
    await assertFails(get(), "protocol", { message: /parts/ });
    server.result(task("WORKING", { artifacts: artifacts(500) }));
    assert.equal((await get()).artifacts.length, 500);
    server.result(task("WORKING", { artifacts: artifacts(501) }));
    await assertFails(get(), "protocol", { message: /artifacts/ });
  });

  test("bytes are counted", async () => {
    const sized = (bytes: number) =>
      server.says((_, response, id) => {
        const [head, tail] = [`{"jsonrpc":"2.0","id":${id},"result":{"id":"t1","x":"`, '"}}'];
        response.writeHead(200, { "content-type": "application/json" });
        response.end(head + " ".repeat(bytes - head.length - tail.length) + tail);
      });
    sized(8_388_608);
    assert.equal((await get()).taskId, "t1");
    sized(8_388_609);
    await assertFails(get(), "too_large", { sent: true });
  });

  test("about another task, another conversation, or on and on after the end", async () => {
    server.result(task("WORKING", { id: "t2" }));
    await assertFails(get(), "protocol", { message: /another task/ });
    const exchange = await anew();
    const next = (state: string, over = {}) => {
      server.result(task(state, over));
      return exchange.get("t1", never);
    };
    await next("WORKING");
    await assertFails(next("WORKING", { contextId: "c2" }), "protocol", { message: /conversation/ });
    await next("COMPLETED");
    await next("COMPLETED");
    await assertFails(next("WORKING"), "protocol", { message: /after it has ended/ });
    await assertFails(next("CANCELED"), "protocol");
  });

  test("about another task or conversation than an earlier exchange was", async () => {
    const before = { taskId: "t1", contextId: "c1" };
    const later = () => talk(server, { card: false, before });
    server.result(task("WORKING"));
    assert.equal((await (await later()).get("t1", never)).contextId, "c1");
    server.result(task("WORKING", { contextId: "c2" }));
    await assertFails((await later()).get("t1", never), "protocol", { message: /conversation/ });
    server.result(task("WORKING", { id: "t2" }));
    await assertFails((await later()).get("t2", never), "protocol", { message: /another task/ });
  });

  test("that never come", async () => {
    server.says(() => {});
    const exchange = await anew({ askMs: 50, sendMs: 50 });
    for (const asks of [
      () => exchange.get("t1", never),
      () => exchange.cancel("t1", never),
      () => exchange.start(message("x"), never),
      () => exchange.start(message("x", { stream: false }), never),
    ]) {
      const error = await assertFails(asks(), "timeout", { sent: true });
      assert.ok(error.retryable);
    }
  });
});

describe("errors", () => {
  test("of JSON-RPC come as what they mean, in an answer and in a stream", async () => {
    for (const [code, expected, sent] of [
      [-32_700, "invalid", false],
      [-32_600, "invalid", false],
      [-32_602, "invalid", false],
      [-32_601, "unsupported", false],
      [-32_001, "not_found", false],
      [-32_002, "not_cancelable", false],
      [-32_004, "unsupported", false],
      [-32_009, "unsupported", false],
      [-32_603, "failed", true],
      [-32_006, "failed", true],
      [7, "failed", true],
    ] as const satisfies readonly (readonly [number, RemoteErrorCode, boolean])[]) {
      for (const answer of [200, 500]) {
        server.error({ code, message: `SECRET\n\u0007${"x".repeat(900)}` }, code > 0 ? 200 : answer);
        const error = await assertFails(polled(), expected, { sent });
        assert.equal(error.rpcCode, code);
        assert.equal(error.says?.slice(0, 8), "SECRET x");
        assert.ok((error.says?.length ?? 0) <= 500);
        await assertFails(streamed(), expected, { sent });
      }
      server.says(({ rpc }, response, id) => {
        const told = { jsonrpc: "2.0", id, error: { code, message: "SECRET" } };
        if (rpc !== "SendStreamingMessage") return sendJson(response, told);
        begin(response);
        response.end(event(told));
      });
      await assertFails(streamed(), expected, { sent });
    }
    server.error("SECRET");
    await assertFails(get(), "protocol");
  });

  test("of HTTP come by their status, with how long to wait", async () => {
    for (const [code, expected, sent] of [
      [401, "refused", false],
      [403, "refused", false],
      [404, "invalid", false],
      [408, "timeout", true],
      [429, "overloaded", false],
      [500, "failed", true],
      [503, "overloaded", true],
    ] as const) {
      server.body("<html>SECRET</html>", "text/html", code, { "retry-after": "7" });
      const error = await assertFails(polled(), expected, { sent });
      assert.equal(error.status, code);
      assert.equal(error.retryAfterMs, 7_000);
      server.body('{"jsonrpc":"2.0"}', "application/json", code);
      await assertFails(streamed(), expected, { sent });
    }
    server.error({ code: -32_000, message: "who are you" }, 401);
    await assertFails(get(), "refused");
    for (const [value, ms] of [
      ["3600", 3_600_000],
      ["3601", 3_600_000],
      ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
      ["soon", undefined],
    ] as const) {
      server.body("", "text/plain", 429, { "retry-after": value });
      assert.equal((await assertFails(get(), "overloaded")).retryAfterMs, ms);
    }
  });

  test("of the way come as what was sent by then", async () => {
    server.says((_, response) => response.destroy());
    const lost = await assertFails(polled(), "lost", { sent: true });
    assert.ok(lost.retryable);
    const gone = await liar();
    await gone.close();
    const to = (remote: typeof gone) => talk(remote, { card: false });
    const error = await assertFails((await to(gone)).start(message("x"), never), "unreachable", {
      sent: false,
    });
    assert.ok(error.retryable);
    const elsewhere = await talk({ url: server.url, origin: "https://example.com" }, { card: false });
    await assertFails(elsewhere.get("t1", never), "not_allowed", { sent: false });
    server.says((_, response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end());
    await assertFails(get(), "not_allowed");
  });
});

describe("streams", () => {
  test("that are empty, or end before the task, are lost, and nothing is sent again", async () => {
    const sent = () => server.requests.filter(({ rpc }) => rpc?.startsWith("Send")).length;
    for (const said of [[], [{ task: task("WORKING") }], [{ task: task("WORKING") }, artifact("a")]]) {
      const before = sent();
      server.stream(...said);
      const error = await assertFails(streamed(), "lost", { sent: true });
      assert.ok(error.retryable);
      assert.equal(sent(), before + 1);
    }
    server.says((_, response, id) => {
      begin(response);
      response.write(event({ jsonrpc: "2.0", id, result: { task: task("WORKING") } }), () =>
        response.destroy(),
      );
    });
    await assertFails(streamed(), "lost", { sent: true });
  });

  test("that say nothing but comments are too late, and what comes after a first event is not", async () => {
    const alive = (first?: unknown) =>
      server.says((_, response, id) => {
        begin(response);
        if (first !== undefined) response.write(event({ jsonrpc: "2.0", id, result: first }));
        const timer = setInterval(() => response.write(": alive\n\n"), 20);
        response.on("close", () => clearInterval(timer));
      });
    alive();
    await assertFails(streamed({ sendMs: 500 }), "timeout", { sent: true, message: /said nothing/ });
    alive(status("WORKING"));
    await assertFails(streamed({ sendMs: 2_000, streamMs: 3_000 }), "timeout", { message: /went on/ });
  });

  test("that end while the task waits for somebody have ended", async () => {
    for (const state of ["INPUT_REQUIRED", "AUTH_REQUIRED"]) {
      server.stream({ task: task("WORKING") }, status(state));
      assert.equal((await streamed()).at(-1)?.state, `TASK_STATE_${state}`);
    }
  });

  test("are not read on after the end", async () => {
    server.stream({ task: task("WORKING") }, status("COMPLETED"), status("WORKING"), { SECRET: 1 });
    const said = await streamed();
    assert.deepEqual(
      said.map(({ state }) => state),
      ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"],
    );
    server.stream({ message: { messageId: "m", parts: [{ text: "hi" }] } }, { task: task("WORKING") });
    assert.deepEqual(
      (await streamed()).map(({ kind, text }) => [kind, text]),
      [["message", "hi"]],
    );
  });

  test("with anything else than events of one task are no A2A", async () => {
    for (const said of [
      [{}],
      [{ SECRET: task("WORKING") }],
      [{ task: null }],
      [{ task: task("WORKING") }, { ...status("WORKING", { taskId: "t2" }) }],
      [{ task: task("WORKING") }, { task: task("WORKING", { id: "t2" }) }],
      [{ task: task("WORKING") }, status("WORKING", { contextId: "c2" })],
      [{ task: task("WORKING") }, status("SECRET")],
      [{ task: task("WORKING") }, { artifactUpdate: { taskId: "t1" } }],
      [{ task: task("WORKING") }, { message: { messageId: "m", parts: [] } }],
    ]) {
      server.stream(...said);
      await assertFails(streamed(), "protocol", { sent: true });
    }
    for (const text of ["data: SECRET\n\n", "data: []\n\n", "data: null\n\n", "data: {}\n\n"]) {
      server.says((_, response) => {
        begin(response);
        response.end(text);
      });
      await assertFails(streamed(), "protocol", { sent: true });
    }
    server.says((_, response) => {
      begin(response);
      response.end(Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0xfe, 0x0a, 0x0a]));
    });
    await assertFails(streamed(), "protocol");
    server.says((_, response, id) => {
      begin(response);
      response.end(event({ jsonrpc: "2.0", id: id + 1, result: { task: task("WORKING") } }));
    });
    await assertFails(streamed(), "protocol");
  });

  test("may begin with a state of a task, have comments, and events on several lines", async () => {
    server.says((_, response, id) => {
      begin(response);
      const text = JSON.stringify({ jsonrpc: "2.0", id, result: status("WORKING") }, null, 1);
      response.write(`: alive\r\n\r\nid: 1\r\n${text.replace(/^/gm, "data: ")}\n\n`);
      response.end(event({ jsonrpc: "2.0", id, result: status("COMPLETED") }));
    });
    assert.deepEqual(
      (await streamed()).map(({ kind, taskId, state }) => [kind, taskId, state]),
      [
        ["status", "t1", "TASK_STATE_WORKING"],
        ["status", "t1", "TASK_STATE_COMPLETED"],
      ],
    );
  });

  test("that never end are ended, by their events, their time and their artifacts", async () => {
    const endless = (each: (at: number) => unknown) =>
      server.says((_, response, id) => {
        begin(response);
        let at = 0;
        const more = () => {
          while (!response.destroyed && response.write(event({ jsonrpc: "2.0", id, result: each(at++) })));
        };
        response.on("drain", more);
        more();
      });
    endless(() => status("WORKING"));
    await assertFails(streamed({ streamEvents: 20 }), "too_large", { sent: true });
    endless((at) => artifact(`a${at}`));
    await assertFails(streamed(), "too_large", { message: /500 artifacts/ });
    server.says((_, response, id) => {
      begin(response);
      response.write(event({ jsonrpc: "2.0", id, result: status("WORKING") }));
    });
    const error = await assertFails(streamed({ streamMs: 100 }), "timeout", { sent: true });
    assert.ok(error.retryable);
    server.stream(status("WORKING"), status("WORKING"), status("COMPLETED"));
    assert.equal((await streamed({ streamEvents: 3 })).length, 3);
  });

  test("have events of a bounded size", async () => {
    const sized = (characters: number, end = "\n\n") =>
      server.says((_, response, id) => {
        begin(response);
        const [head, tail] = [`{"jsonrpc":"2.0","id":${id},"result":{"task":{"id":"t1","x":"`, '"}}}'];
        response.write(`data: ${head}${" ".repeat(characters - head.length - tail.length)}${tail}${end}`);
        response.end(event({ jsonrpc: "2.0", id, result: status("COMPLETED") }));
      });
    sized(3_999_990);
    assert.equal((await streamed()).length, 2);
    sized(4_000_001);
    await assertFails(streamed(), "too_large", { sent: true });
  });

  test("are closed by whoever does not read them", async () => {
    const closed = Promise.withResolvers<void>();
    server.says((_, response, id) => {
      begin(response);
      response.write(event({ jsonrpc: "2.0", id, result: status("WORKING") }));
      response.on("close", () => closed.resolve());
    });
    const { rest } = await (await anew()).start(message("x"), never);
    const unread: Rest = rest ?? assert.fail("there is a stream");
    await unread.close();
    await closed.promise;
    for await (const seen of (await anew()).follow("t1", never)) {
      assert.equal(seen.taskId, "t1");
      break;
    }
    await assert.rejects(
      collect((await anew()).follow("t1", AbortSignal.abort(new Error("enough")))),
      /enough/,
    );
  });
});
