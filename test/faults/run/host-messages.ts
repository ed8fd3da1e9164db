import * as z from "zod";

/** What the runner and the host in its own process say to each other, over Node's channel between processes. */

const endpoints = z.object({ dynamodb: z.string(), sqs: z.string(), s3: z.string(), nats: z.string() });

export const startOptions = z.object({
  dataDir: z.string(),
  assemblyDir: z.string(),
  natsUrl: z.string(),
  timeScale: z.number(),
  /** Further environment of the functions. */
  env: z.record(z.string(), z.string()),
});
export type StartOptions = z.infer<typeof startOptions>;

const processes = z.object({
  functions: z.array(z.object({ name: z.string(), pids: z.array(z.int()) })),
  servers: z.array(z.object({ name: z.string(), pid: z.int().optional() })),
});
/** The host's children. */
export type Processes = z.infer<typeof processes>;

const ready = z.object({
  endpoints,
  tableName: z.string(),
  bucketName: z.string(),
  queueUrls: z.record(z.string(), z.string()),
});
/** Where the real parts of a running host are. */
export type Ready = z.infer<typeof ready>;

export const fromHost = z.discriminatedUnion("type", [
  /** It wants to know what its functions get to see instead. */
  z.object({ type: z.literal("route"), real: endpoints }),
  z.object({ type: z.literal("ready"), ready }),
  z.object({ type: z.literal("processes"), processes }),
  z.object({ type: z.literal("trouble"), message: z.string() }),
]);
export type FromHost = z.infer<typeof fromHost>;

export const toHost = z.discriminatedUnion("type", [
  z.object({ type: z.literal("start"), options: startOptions }),
  z.object({ type: z.literal("routed"), seen: endpoints }),
  z.object({ type: z.literal("stop") }),
]);
export type ToHost = z.infer<typeof toHost>;
