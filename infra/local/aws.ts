import { UndiciHttpHandler } from "@smithy/undici-http-handler";
import { REGION } from "./intrinsics.ts";

/** The stand-ins take any key; the SDK wants one. */
export const KEYS = { accessKeyId: "local", secretAccessKey: "local" };

/** The settings of an AWS client that talks to a stand-in on this machine. */
export function awsSettings(endpoint: string) {
  return { endpoint, region: REGION, credentials: KEYS };
}

/**
 * The same for a client that makes many requests: Node.js's own HTTP takes a third more of the processors, which on one
 * machine are the functions' too (docs/benchmarks.md).
 */
export function busyAwsSettings(endpoint: string) {
  return { ...awsSettings(endpoint), cacheMiddleware: true, requestHandler: new UndiciHttpHandler() };
}
