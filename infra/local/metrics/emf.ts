import * as z from "zod";
import type { MetricKey } from "./store.ts";

/** CloudWatch User Guide, "Specification: Embedded metric format". */
const embedded = z.looseObject({
  _aws: z.object({
    CloudWatchMetrics: z.array(
      z.object({
        Namespace: z.string(),
        Dimensions: z.array(z.array(z.string())),
        Metrics: z.array(z.object({ Name: z.string() })),
      }),
    ),
  }),
});
const values = z.union([z.number().transform((value) => [value]), z.array(z.number())]);

/** What a line of a function's log says in CloudWatch's embedded metric format; nothing for any other line. */
export function metricsIn(line: string): { key: MetricKey; values: readonly number[] }[] {
  if (!line.startsWith("{") || !line.includes('"CloudWatchMetrics"')) return [];
  const read = embedded.safeParse(parsed(line));
  if (!read.success) return [];
  const { _aws, ...members } = read.data;
  return _aws.CloudWatchMetrics.flatMap(({ Namespace, Dimensions, Metrics }) =>
    Metrics.flatMap(({ Name }) => {
      const told = values.safeParse(members[Name]);
      if (!told.success) return [];
      return Dimensions.map((set) => ({
        key: {
          namespace: Namespace,
          name: Name,
          dimensions: Object.fromEntries(set.map((name) => [name, String(members[name])])),
        },
        values: told.data,
      }));
    }),
  );
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
