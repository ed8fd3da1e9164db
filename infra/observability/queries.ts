import { Stack } from "aws-cdk-lib";
import { type ILogGroup, QueryDefinition, QueryString } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import type { LogField } from "../../shared/telemetry/fields.ts";

/** A query that is saved with the stack. */
interface SavedQuery {
  readonly name: string;
  readonly fields: readonly ("@timestamp" | LogField)[];
  readonly filter: string;
  readonly rest: { readonly stats: string; readonly sort: string } | { readonly sort: string };
  readonly limit?: number;
}

/** CloudWatch Logs Insights queries over all functions' logs; docs/metrics.md explains the fields. */
export const SAVED_QUERIES: readonly SavedQuery[] = [
  {
    name: "A task's lines",
    fields: [
      "@timestamp",
      "service",
      "level",
      "message",
      "epoch",
      "revision",
      "step",
      "code",
      "errorMessage",
    ],
    filter: 'taskId = "task_ID"',
    rest: { sort: "@timestamp asc" },
    limit: 1_000,
  },
  {
    name: "Errors by function",
    fields: ["@timestamp", "service", "level", "message", "errorName"],
    filter: 'level in ["WARN", "ERROR", "CRITICAL"]',
    rest: { stats: "count(*) as times by service, level, message, errorName", sort: "times desc" },
  },
  {
    name: "Slowest steps",
    fields: ["@timestamp", "to", "step", "ms", "attempts", "taskId"],
    filter: 'message = "a step took long"',
    rest: { sort: "ms desc" },
    limit: 100,
  },
  {
    name: "Rejected, by reason",
    fields: ["@timestamp", "from", "to", "code"],
    filter: 'message = "a task is rejected"',
    rest: { stats: "count(*) as times by code, from, to", sort: "times desc" },
  },
];

export function saveQueries(scope: Construct, logGroups: readonly ILogGroup[]): void {
  for (const [i, { name, fields, filter, rest, limit }] of SAVED_QUERIES.entries())
    new QueryDefinition(scope, `Query${i}`, {
      queryDefinitionName: `${Stack.of(scope).stackName}/${name}`,
      queryString: new QueryString({
        fields: [...fields],
        filterStatements: [filter],
        ...("stats" in rest && { statsStatements: [rest.stats] }),
        sort: rest.sort,
        ...(limit !== undefined && { limit }),
      }),
      logGroups: [...logGroups],
    });
}
