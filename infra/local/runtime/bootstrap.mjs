// @ts-check
/**
 * The program inside a function's sandbox: it loads the bundle and speaks the Lambda Runtime API (AWS Lambda:
 * "Using the Lambda runtime API for custom runtimes") as the managed Node.js runtime does. It is JavaScript, its types in
 * comments, because every start of a sandbox would strip them anew: that took a fifth of the start.
 */

import { existsSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** @import { IncomingHttpHeaders } from "node:http" */
/** @typedef {(event: unknown, context: object) => unknown} Handler */
/** @typedef {{ readonly headers: IncomingHttpHeaders, readonly body: string }} Answer */

const env = process.env;
const [host = "127.0.0.1", port] = (env.AWS_LAMBDA_RUNTIME_API ?? "").split(":");
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
/** @type {string | undefined} */
let currentRequest;

// The host holds the other end: when it is gone, however it went, so is this.
process.stdin.on("close", () => process.exit(0)).resume();
process.on("uncaughtException", (error) => crash(error, "Runtime.UncaughtException", 129));
process.on("unhandledRejection", (reason) => crash(reason, "Runtime.UnhandledPromiseRejection", 128));

async function main() {
  /** @type {Handler} */
  let handler;
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

/**
 * @param {Handler} handler
 * @param {string} id
 * @param {IncomingHttpHeaders} headers
 * @param {string} body
 */
async function run(handler, id, headers, body) {
  /** @type {string} */
  let answer;
  try {
    answer = JSON.stringify(await handler(JSON.parse(body), contextOf(id, headers))) ?? "null";
  } catch (error) {
    console.error(error);
    await call("POST", `invocation/${id}/error`, JSON.stringify(describe(error)));
    return;
  }
  await call("POST", `invocation/${id}/response`, answer);
}

/**
 * @param {string} root
 * @param {string} name
 * @returns {Promise<Handler>}
 */
async function loadHandler(root, name) {
  const dot = name.lastIndexOf(".");
  const base = join(root, name.slice(0, dot));
  const path = [".mjs", ".js", ".cjs"].map((extension) => base + extension).find(existsSync);
  if (path === undefined) throw named("Runtime.ImportModuleError", `Cannot find module '${base}'`);
  /** @type {Record<string, unknown>} */
  const module = await import(pathToFileURL(path).href);
  const handler = module[name.slice(dot + 1)];
  if (typeof handler !== "function")
    throw named("Runtime.HandlerNotFound", `${name} is undefined or not exported`);
  return (event, context) => handler(event, context);
}

/**
 * AWS Lambda: "AWS Lambda context object in Node.js".
 *
 * @param {string} id
 * @param {IncomingHttpHeaders} headers
 * @returns {object}
 */
function contextOf(id, headers) {
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

/**
 * As in the managed runtime, an error that nobody caught ends the invocation and then the process.
 *
 * @param {unknown} error
 * @param {string} type
 * @param {number} code
 */
function crash(error, type, code) {
  console.error(error);
  const path = currentRequest === undefined ? "init/error" : `invocation/${currentRequest}/error`;
  const report = JSON.stringify({ ...describe(error), errorType: type });
  // Not over the shared agent: its one connection may be waiting for the next invocation.
  void call("POST", path, report, new Agent()).finally(() => process.exit(code));
}

/**
 * @param {unknown} error
 * @returns {{ errorType: string, errorMessage: string, trace: string[] }}
 */
function describe(error) {
  if (!(error instanceof Error)) return { errorType: typeof error, errorMessage: String(error), trace: [] };
  return { errorType: error.name, errorMessage: error.message, trace: (error.stack ?? "").split("\n") };
}

/**
 * @param {string} name
 * @param {string} message
 */
function named(name, message) {
  return Object.assign(new Error(message), { name });
}

/**
 * @param {string} method
 * @param {string} path
 * @param {string} [body]
 * @param {Agent} [via]
 * @returns {Promise<Answer>}
 */
function call(method, path, body, via = agent) {
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
        /** @type {Buffer[]} */
        const chunks = [];
        response.on("data", (chunk) => chunks.push(chunk));
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
