import assert from "node:assert/strict";
import { after, test } from "node:test";
import * as z from "zod";
import { wayTo } from "../../../shared/remotes/exchange/connect.ts";
import { RemoteError } from "../../../shared/remotes/exchange/index.ts";
import { sendJson } from "../servers/index.ts";
import { liar } from "./liar.ts";
import { assertFails, message, never, talk } from "./support.ts";

const server = await liar();
after(() => server.close());
const SENT = { contextId: "c1", messageId: "m1" };
const find = async () => (await talk(server, { card: false })).find(SENT, never);

interface Listed {
  readonly id: string;
  readonly contextId?: string;
  readonly messages: readonly string[];
}
const asked = z.object({
  id: z.number(),
  method: z.string(),
  params: z.looseObject({ pageToken: z.string().optional() }),
});

/** A server whose list of tasks has these pages; a task is then given as it is. */
function pages(...all: readonly (readonly Listed[])[]): void {
  server.says(({ body }, response) => {
    const { id, method, params } = asked.parse(JSON.parse(body));
    const at = Number(params.pageToken ?? 0);
    const tasks = (all[at] ?? []).map(({ id: task, contextId, messages }) => ({
      id: task,
      contextId: contextId ?? "c1",
      status: { state: "TASK_STATE_WORKING" },
      history: messages.map((messageId) => ({ messageId, role: "ROLE_USER", parts: [] })),
    }));
    const list = {
      tasks,
      nextPageToken: at + 1 < all.length ? String(at + 1) : "",
      pageSize: 50,
      totalSize: 1,
    };
    const found = { id: params.id, contextId: "c1", status: { state: "TASK_STATE_COMPLETED" } };
    sendJson(response, { jsonrpc: "2.0", id, result: method === "ListTasks" ? list : found });
  });
}

test("a message is found in the history of a task of its conversation, on whichever page", async () => {
  pages([{ id: "t1", messages: ["m0"] }], [], [{ id: "t2", messages: ["m0", "m1"] }]);
  const found = await find();
  assert.ok(typeof found === "object");
  assert.deepEqual([found.taskId, found.state], ["t2", "TASK_STATE_COMPLETED"]);
  const call = server.requests.find(({ rpc }) => rpc === "ListTasks") ?? assert.fail();
  const { params } = asked.parse(JSON.parse(call.body));
  assert.deepEqual([params.contextId, params.historyLength], ["c1", 1_000]);
});

test("it is nowhere when all tasks show all of their messages, and unknown when they do not", async () => {
  pages([]);
  assert.equal(await find(), "none");
  pages([{ id: "t1", messages: ["m0"] }]);
  assert.equal(await find(), "none");
  pages([{ id: "t1", contextId: "c2", messages: ["m1"] }]);
  assert.equal(await find(), "none", "a message of another conversation is another's");
  pages([{ id: "t1", messages: [] }]);
  assert.equal(await find(), "unknown");
  const history = (length: number) => pages([{ id: "t1", messages: Array(length).fill("m0") }]);
  history(999);
  assert.equal(await find(), "none");
  history(1_000);
  assert.equal(await find(), "unknown");
  const many = (count: number) =>
    pages(...Array.from({ length: count }, () => [{ id: "t1", messages: ["m0"] }]));
  many(10);
  assert.equal(await find(), "none");
  many(11);
  assert.equal(await find(), "unknown");
});

test("an agent without lists, or with one that is too large, is one that cannot be asked; a broken one is an error", async () => {
  for (const code of [-32_601, -32_004]) {
    server.error({ code, message: "no" });
    assert.equal(await find(), "unknown");
  }
  server.body("x".repeat(8_388_609));
  assert.equal(await find(), "unknown");
  server.body("", "text/plain", 503);
  await assertFails(find(), "overloaded");
  server.result({ tasks: [{ id: 7 }, {}], nextPageToken: "" });
  await assertFails(find(), "protocol");
});

test("an agent is spoken to by JSON-RPC and by the newest version that it has", () => {
  const of = (...interfaces: readonly (readonly [string, string])[]) =>
    wayTo(
      "auditor",
      interfaces.map(([protocolBinding, protocolVersion]) => ({ url: "", protocolBinding, protocolVersion })),
    );
  const spoken = (way: ReturnType<typeof wayTo>) => [way.binding, way.protocol];
  assert.deepEqual(spoken(wayTo("auditor", undefined)), ["JSONRPC", "1.0"]);
  assert.deepEqual(spoken(of(["HTTP+JSON", "1.0"], ["JSONRPC", "0.3"], ["jsonrpc", "1.0"])), [
    "JSONRPC",
    "1.0",
  ]);
  assert.deepEqual(spoken(of(["HTTP+JSON", "1.0"], ["JSONRPC", "0.2"])), ["JSONRPC", "0.3"]);
  assert.deepEqual(spoken(of(["GRPC", "1.0"], ["HTTP+JSON", "1.1"])), ["HTTP+JSON", "1.0"]);
  assert.throws(() => of(["GRPC", "1.0"], ["JSONRPC", "2.0"]), RemoteError);
});

test("an agent that has HTTP+JSON alone is polled, by paths below the operator's URL", async () => {
  const calls: string[] = [];
  const result = { id: "t1", contextId: "c1", status: { state: "TASK_STATE_WORKING" } };
  server.says(({ method, path }, response) => {
    if (path.startsWith("/.well-known/"))
      return sendJson(response, {
        name: "Rest",
        supportedInterfaces: [
          { url: "https://elsewhere.example", protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
        ],
        capabilities: { streaming: true },
        skills: [],
      });
    calls.push(`${method} ${path}`);
    if (path.includes("/nobody")) {
      const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "TASK_NOT_FOUND" }];
      return sendJson(
        response,
        { error: { code: 404, status: "NOT_FOUND", message: "SECRET", details } },
        404,
      );
    }
    sendJson(response, path.endsWith(":send") ? { task: result } : result);
  });
  const exchange = await talk(server);
  assert.equal(exchange.streams, false);
  const { seen, rest } = await exchange.start(message("x"), never);
  assert.deepEqual([seen.taskId, rest], ["t1", undefined]);
  assert.equal((await exchange.get("t1", never)).state, "TASK_STATE_WORKING");
  assert.equal((await exchange.cancel("t1", never)).outcome, "asked");
  await assertFails(exchange.get("nobody", never), "not_found");
  assert.deepEqual(calls, [
    "POST /a2a/message:send",
    "GET /a2a/tasks/t1?historyLength=0",
    "POST /a2a/tasks/t1:cancel",
    "GET /a2a/tasks/nobody?historyLength=0",
  ]);
});
