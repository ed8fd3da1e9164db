import { existsSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { fileURLToPath } from "node:url";
import * as z from "zod";

const profile = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({
        functionName: z.string(),
        url: z.string(),
        lineNumber: z.number(),
        columnNumber: z.number(),
      }),
    }),
  ),
  samples: z.array(z.number()),
  /** Microseconds since the sample before. */
  timeDeltas: z.array(z.number()),
});

/** How long a process has computed in code of one kind, in milliseconds, by the kind's name. */
export type Where = ReadonlyMap<string, number>;

/** No work of the process: waiting, and what the profiler's own session has Node.js note of each request. */
const NOT_ITS_OWN = new Set(["(idle)", "Node.js inspector"]);
const US_PER_MS = 1_000;

/** Where a CPU profile's samples lie: by package, by our own folder, or by Node.js's own module. */
export function whereIn(text: string): Where {
  const { nodes, samples, timeDeltas } = profile.parse(JSON.parse(text));
  const kinds = new Map(nodes.map(({ id, callFrame }) => [id, kindOf(callFrame)]));
  const spent = new Map<string, number>();
  for (const [at, id] of samples.entries()) {
    const kind = kinds.get(id) ?? "unknown";
    if (NOT_ITS_OWN.has(kind)) continue;
    spent.set(kind, (spent.get(kind) ?? 0) + (timeDeltas[at] ?? 0) / US_PER_MS);
  }
  return spent;
}

const FAMILIES: readonly (readonly [family: string, kind: RegExp])[] = [
  ["AWS SDK", /^(@aws-sdk|@smithy|@aws-crypto|@aws)\//],
  ["NATS client", /^@nats-io\//],
  ["middy, Powertools", /^(@middy|@aws-lambda-powertools)\//],
  ["zod", /^zod$/],
  [
    "fauxqs, fastify",
    /^(fauxqs|fastify|find-my-way|light-my-request|avvio|secure-json-parse|valibot|toad-cache)$/,
  ],
  [
    "sockets and files",
    /^native (writev|write\w*|read\w*|shutdown|connect|open|fstat|close|run|all|get|exec)$/,
  ],
  ["Node.js", /^(Node\.js |native )/],
  ["garbage collection", /^\(garbage collector\)$/],
  ["V8", /^\(/],
  ["Sluice", /^sluice /],
];

/** The same, taken together by who has made it. */
export function byFamily(where: Where): Where {
  const families = new Map<string, number>();
  for (const [kind, ms] of where) {
    const [family] = FAMILIES.find(([, pattern]) => pattern.test(kind)) ?? ["other packages"];
    families.set(family, (families.get(family) ?? 0) + ms);
  }
  return families;
}

interface Frame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

function kindOf(frame: Frame): string {
  if (frame.url === "")
    return frame.functionName.startsWith("(") ? frame.functionName : `native ${frame.functionName}`;
  if (frame.url.startsWith("node:"))
    return frame.url.replace(/^node:(internal\/)?/, "Node.js ").replace(/\/.*/, "");
  const source = sourceOf(frame);
  const [, package_] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source) ?? [];
  if (package_ !== undefined) return package_;
  const [, own] = /\/(functions|shared|infra|agents|testing|test)\/([^/]+)/.exec(source) ?? [];
  return own === undefined
    ? source
    : `sluice ${source.slice(source.indexOf(`/${own}/`) + 1).replace(/\/[^/]+$/, "")}`;
}

const maps = new Map<string, SourceMap | undefined>();

/** The file that a bundle's place comes from. */
function sourceOf({ url, lineNumber, columnNumber }: Frame): string {
  const path = url.startsWith("file:") ? fileURLToPath(url) : url;
  if (!maps.has(path)) maps.set(path, existsSync(`${path}.map`) ? mapOf(`${path}.map`) : undefined);
  const entry = maps.get(path)?.findEntry(lineNumber, columnNumber);
  return entry !== undefined && "originalSource" in entry ? entry.originalSource : path;
}

function mapOf(path: string): SourceMap {
  return new SourceMap(JSON.parse(readFileSync(path, "utf8")));
}
