import { UndiciHttpHandler } from "@smithy/undici-http-handler";
import { awsSettings } from "./aws.ts";

/**
 * {@link awsSettings} for a client that makes many requests: Node.js's own HTTP takes a third more of the processors,
 * which on one machine are the functions' too (docs/benchmarks.md).
 */
export function busyAwsSettings(endpoint: string) {
  return { ...awsSettings(endpoint), cacheMiddleware: true, requestHandler: new UndiciHttpHandler() };
}
