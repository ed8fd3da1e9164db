/**
 * Loaded into each function's process before its code (`node --import`): sets its clock wrong by what
 * `FAULTS_CLOCK_<FUNCTION>` says, in milliseconds. The time that an invocation has left stays right, as it
 * does in the cloud, where it is told by the same wrong clock.
 */
import { subscribe } from "node:diagnostics_channel";
import { IncomingMessage } from "node:http";

const name = process.env.AWS_LAMBDA_FUNCTION_NAME ?? "";
const byMs = Number(process.env[`FAULTS_CLOCK_${name.toUpperCase()}`] ?? 0);
const DEADLINE = "lambda-runtime-deadline-ms";

if (byMs !== 0) {
  const { now } = Date;
  globalThis.Date = new Proxy(Date, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now() + byMs] : args, newTarget),
    apply: (target) => new target(now() + byMs).toString(),
    get: (target, key, receiver) => (key === "now" ? () => now() + byMs : Reflect.get(target, key, receiver)),
  });

  // Told before the response is handed out (Node.js: diagnostics_channel, "Built-in Channels").
  subscribe("http.client.response.finish", (message) => {
    const response =
      typeof message === "object" && message !== null && "response" in message ? message.response : undefined;
    if (!(response instanceof IncomingMessage)) return;
    const { headers } = response;
    if (headers[DEADLINE] !== undefined) headers[DEADLINE] = String(Number(headers[DEADLINE]) + byMs);
  });
}
