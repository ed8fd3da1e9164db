/**
 * The program inside a function's sandbox: it loads the bundle and speaks the Lambda Runtime API (AWS Lambda:
 * "Using the Lambda runtime API for custom runtimes") as the managed Node.js runtime does.
 */

import { existsSync } from "node:fs";
import { Agent, type IncomingHttpHeaders, request } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

type Handler = (event: unknown, context: object) => unknown;

const env = process.env;
const [host = "127.0.0.1", port] = (env.AWS_LAMBDA_RUNTIME_API ?? "").split(":");
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let currentRequest: string | undefined;

// The host holds the other end: when it is gone, however it went, so is this.
process.stdin.on("close", () => process.exit(0)).resume();
process.on("uncaughtException", (error) => crash(error, "Runtime.UncaughtException", 129));
process.on("unhandledRejection", (reason) => crash(reason, "Runtime.UnhandledPromiseRejection", 128));

async function main(): Promise<void> {
  let handler: Handler;
  try {
    handler = await loadHandler(env.LAMBDA_TASK_ROOT ?? "", env._HANDLER ?? "");
  } catch (error) {
    await call("POST", "init/error", JSON.stringify(describe(error)));
    process.exit(1);
  }
  for (;;) {
    const { headers, body } = await call("GET", "invocation/next");
    const id = String(headers["lambda-runtime-aws-request-id"]);
    currentRequest = id;
    await run(handler, id, headers, body);
    currentRequest = undefined;
  }
}

async function run(handler: Handler, id: string, headers: IncomingHttpHeaders, body: string): Promise<void> {
  let answer: string;
  try {
    answer = JSON.stringify(await handler(JSON.parse(body), contextOf(id, headers))) ?? "null";
  } catch (error) {
    console.error(error);
    await call("POST", `invocation/${id}/error`, JSON.stringify(describe(error)));
    return;
  }
  await call("POST", `invocation/${id}/response`, answer);
}

async function loadHandler(root: string, name: string): Promise<Handler> {
  const dot = name.lastIndexOf(".");
  const base = join(root, name.slice(0, dot));
  const path = [".mjs", ".js", ".cjs"].map((extension) => base + extension).find(existsSync);
  if (path === undefined) throw named("Runtime.ImportModuleError", `Cannot find module '${base}'`);
  const module: Record<string, unknown> = await import(pathToFileURL(path).href);
  const handler = module[name.slice(dot + 1)];
  if (typeof handler !== "function")
    throw named("Runtime.HandlerNotFound", `${name} is undefined or not exported`);
  return (event, context) => handler(event, context);
}

/** AWS Lambda: "AWS Lambda context object in Node.js". */
function contextOf(id: string, headers: IncomingHttpHeaders): object {
  const deadline = Number(headers["lambda-runtime-deadline-ms"]);
  return {
    awsRequestId: id,
    callbackWaitsForEmptyEventLoop: true,
    functionName: env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: env.AWS_LAMBDA_FUNCTION_VERSION,
    invokedFunctionArn: headers["lambda-runtime-invoked-function-arn"],
    logGroupName: env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: env.AWS_LAMBDA_LOG_STREAM_NAME,
    memoryLimitInMB: env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    getRemainingTimeInMillis: () => Math.max(0, deadline - Date.now()),
  };
}

/** As in the managed runtime, an error that nobody caught ends the invocation and then the process. */
function crash(error: unknown, type: string, code: number): void {
  console.error(error);
  const path = currentRequest === undefined ? "init/error" : `invocation/${currentRequest}/error`;
  const report = JSON.stringify({ ...describe(error), errorType: type });
  // Not over the shared agent: its one connection may be waiting for the next invocation.
  void call("POST", path, report, new Agent()).finally(() => process.exit(code));
}

function describe(error: unknown): { errorType: string; errorMessage: string; trace: string[] } {
  if (!(error instanceof Error)) return { errorType: typeof error, errorMessage: String(error), trace: [] };
  return { errorType: error.name, errorMessage: error.message, trace: (error.stack ?? "").split("\n") };
}

function named(name: string, message: string): Error {
  return Object.assign(new Error(message), { name });
}

interface Answer {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

function call(method: string, path: string, body?: string, via: Agent = agent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      {
        host,
        port,
        method,
        path: `/2018-06-01/runtime/${path}`,
        agent: via,
        headers: { "content-type": "application/json" },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () =>
          resolve({ headers: response.headers, body: Buffer.concat(chunks).toString("utf8") }),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

await main().catch(() => process.exit(1));
