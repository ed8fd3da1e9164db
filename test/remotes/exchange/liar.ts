import type { ServerResponse } from "node:http";
import * as z from "zod";
import { type SeenRequest, sendJson, serveHttp } from "../servers/http.ts";

const call = z.object({ id: z.number(), method: z.string() });

/** A server of A2A 1.0 without an SDK, for what no SDK would say. */
export async function liar() {
  let answer: (request: SeenRequest, response: ServerResponse, id: number) => void = () => {};
  const server = await serveHttp(async (request, response) =>
    answer(request, response, request.rpc === undefined ? 0 : call.parse(JSON.parse(request.body)).id),
  );
  const says = (by: typeof answer) => {
    answer = by;
  };
  return {
    url: `${server.origin}/a2a`,
    origin: server.origin,
    requests: server.requests,
    close: server.close,
    says,
    /** Answers with this as the result. */
    result: (result: unknown) =>
      says((_, response, id) => sendJson(response, { jsonrpc: "2.0", id, result })),
    /** Answers with a status, a type and a body of its own. */
    body: (body: string, type = "application/json", status = 200, headers = {}) =>
      says((_, response) => response.writeHead(status, { "content-type": type, ...headers }).end(body)),
    error: (error: unknown, status = 200) =>
      says((_, response, id) => sendJson(response, { jsonrpc: "2.0", id, error }, status)),
    /** Answers with a stream of these results, and then ends it. */
    stream: (...results: readonly unknown[]) =>
      says((_, response, id) => {
        begin(response);
        for (const result of results) response.write(event({ jsonrpc: "2.0", id, result }));
        response.end();
      }),
  };
}

/** Begins a stream of events. */
export function begin(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
}

export const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;

export const task = (state: string, over: object = {}) => ({
  id: "t1",
  contextId: "c1",
  status: { state: `TASK_STATE_${state}` },
  ...over,
});
export const status = (state: string, over: object = {}) => ({
  statusUpdate: { taskId: "t1", contextId: "c1", status: { state: `TASK_STATE_${state}` }, ...over },
});
export const artifact = (artifactId: string, over: object = {}) => ({
  artifactUpdate: {
    taskId: "t1",
    contextId: "c1",
    artifact: { artifactId, parts: [{ text: "x" }] },
    ...over,
  },
});
