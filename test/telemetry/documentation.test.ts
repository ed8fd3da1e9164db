import assert from "node:assert/strict";
import { globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Template } from "aws-cdk-lib/assertions";
import type { Command } from "commander";
import * as z from "zod";
import { program } from "../../cli/main.ts";
import { ROOT } from "../../infra/bundle.ts";
import { RUNBOOKS } from "../../infra/observability/alarms.ts";
import { SAVED_QUERIES } from "../../infra/observability/queries.ts";
import { agentFunction, cloudConfig } from "../../shared/config/cloud.ts";
import { agentPolicy } from "../../shared/config/policy.ts";
import { REASONS } from "../../shared/policy/choosing/reasons.ts";
import { LOG_FIELDS } from "../../shared/telemetry/fields.ts";
import { MEANINGS } from "../../shared/telemetry/meanings.ts";
import {
  dimensionSets,
  METRICS,
  type MetricDefinition,
  type MetricName,
} from "../../shared/telemetry/metrics.ts";
import { errorCode } from "../../shared/wire/states.ts";
import { stackWith } from "../infra/support/stack.ts";

const read = (...path: string[]) => readFileSync(join(ROOT, "docs", ...path), "utf8");
const page = read("metrics.md");
const runbooks = new Map(
  readdirSync(join(ROOT, "docs", "runbooks")).map((file) => [
    file.replace(/\.md$/, ""),
    read("runbooks", file),
  ]),
);

/** The rows of a section's table, cell by cell, as they stand. */
function rowsOf(section: string): string[][] {
  const [, text = ""] = page.split(`## ${section}\n`);
  const [table = ""] = text.split("\n## ");
  return table
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "").trim()));
}

const plain = (cell = "") => cell.replaceAll("`", "");
/** What stands in code's letters, lines that were wrapped put together. */
const words = (text: string) =>
  Array.from(text.replace(/\n\s*/g, " ").matchAll(/`([^`]+)`/g), ([, word]) => word ?? "");

const alarm = z.object({
  AlarmName: z.string(),
  AlarmDescription: z.string(),
  AlarmActions: z.array(z.unknown()).min(1),
  OKActions: z.array(z.unknown()).min(1),
  Namespace: z.string().optional(),
  MetricName: z.string().optional(),
  Metrics: z
    .array(
      z.object({
        MetricStat: z
          .object({ Metric: z.object({ Namespace: z.string(), MetricName: z.string() }) })
          .optional(),
      }),
    )
    .default([]),
});
const template = Template.fromStack(stackWith({ functions: { heavy: {} } }));
const alarms = Object.values(template.findResources("AWS::CloudWatch::Alarm")).map(({ Properties }) =>
  alarm.parse(Properties),
);
const alarmIds = alarms.map(({ AlarmName }) => AlarmName.replace(/^sluice-acme-/, ""));

test("the page has each metric of ours with its kind, dimensions and meaning, and no other", () => {
  const told = rowsOf("Our own metrics");
  assert.deepEqual(
    told.map(([name]) => plain(name)),
    Object.keys(METRICS),
  );
  for (const [name = "", kind, dimensions, also, meaning] of told) {
    const metric = plain(name) as MetricName; // as was just compared
    const { kind: of }: MetricDefinition = METRICS[metric];
    const [own = [], ...further] = dimensionSets(metric);
    assert.deepEqual(
      [kind, plain(dimensions), meaning],
      [of, own.join(", ") || "none", MEANINGS[metric]],
      metric,
    );
    assert.equal(plain(also), further.map((set) => set.join(", ") || "service alone").join("; "), metric);
  }
});

test("the page has each log field, and no other", () => {
  assert.deepEqual(
    rowsOf("Log fields").map(([field, says]) => [plain(field), says]),
    Object.entries(LOG_FIELDS),
  );
});

test("the page has each alarm of the stack, and each kind of it has its runbook, that says its name", () => {
  const told = rowsOf("Alarms").map(([name, , link]) => [plain(name), link]);
  const kindOf = (id: string) => RUNBOOKS.find((kind) => id === kind || id.startsWith(`${kind}-`));
  assert.deepEqual(new Set(alarmIds.map(kindOf)), new Set(RUNBOOKS));
  assert.deepEqual([...runbooks.keys()].toSorted(), RUNBOOKS.toSorted());
  assert.deepEqual(told.map(([name]) => name?.replace(/-<.*/, "")).toSorted(), RUNBOOKS.toSorted());
  for (const [name = "", link] of told) {
    const kind = name.replace(/-<.*/, "");
    assert.equal(link, `[${kind}](runbooks/${kind}.md)`);
    const several = alarmIds.filter((id) => id.startsWith(`${kind}-`)).length > 0;
    assert.equal(name.includes("<"), several, name);
    assert.ok(runbooks.get(kind)?.includes(`Alarm: \`${name}\``), name);
  }
});

test("each alarm tells its runbook, acts when it rises and when it is over", () => {
  for (const { AlarmName, AlarmDescription } of alarms) {
    const [, book = ""] = /Runbook: docs\/runbooks\/([a-z-]+)\.md$/.exec(AlarmDescription) ?? [];
    assert.ok(runbooks.has(book), AlarmName);
    assert.ok(AlarmName.startsWith(`sluice-acme-${book}`), AlarmName);
  }
});

test("each metric that an alarm watches is in the catalogue, or one of AWS's that the page names", () => {
  const used = alarms.flatMap(({ Namespace, MetricName: name, Metrics }) => [
    ...(Namespace === undefined ? [] : [`${Namespace} ${name}`]),
    ...Metrics.flatMap(({ MetricStat: of }) =>
      of ? [`${of.Metric.Namespace} ${of.Metric.MetricName}`] : [],
    ),
  ]);
  const [, sentence = ""] = page.split("Of AWS's own metrics they use, ");
  const [named = ""] = sentence.split("\n\n");
  const aws = named.split(";").flatMap((part) => {
    const [namespace, ...names] = words(part);
    return names.map((name) => `${namespace} ${name}`);
  });
  const foreign = used.filter((name) => name.startsWith("AWS/"));
  assert.deepEqual([...new Set(foreign)].toSorted(), aws.toSorted());
  for (const name of used.filter((of) => !of.startsWith("AWS/")))
    assert.ok(
      Object.keys(METRICS).some((metric) => name === `Sluice/sluice-acme ${metric}`),
      name,
    );
});

test("each saved query is on the page, looks at fields that there are, and no other is there", () => {
  const [, text = ""] = page.split("## Saved queries\n");
  const [list = ""] = text.split("\n## ");
  const told = Array.from(list.matchAll(/^- `([^`]+)`/gm), ([, name]) => name);
  assert.deepEqual(
    told,
    SAVED_QUERIES.map(({ name }) => name),
  );
  const known = new Set([...Object.keys(LOG_FIELDS), "@timestamp", "times"]);
  for (const { name, filter, rest } of SAVED_QUERIES) {
    const text = [filter, ...Object.values(rest)].join(" ").replace(/"[^"]*"/g, "");
    const syntax = new Set(["in", "asc", "desc", "count", "as", "by"]);
    for (const [word] of text.matchAll(/@?[A-Za-z]+/g))
      assert.ok(known.has(word) || syntax.has(word), `${name}: ${word}`);
  }
});

test("whatever the runbooks name in code's letters is there: metrics, alarms, fields, settings, functions", () => {
  const settings = [cloudConfig.shape, agentFunction.shape].flatMap((shape) => Object.keys(shape));
  const known = new Set([
    ...Object.keys(METRICS),
    ...Object.keys(LOG_FIELDS),
    ...RUNBOOKS,
    ...alarmIds,
    ...SAVED_QUERIES.map(({ name }) => name),
    ...settings,
    ...Object.keys(agentPolicy.parse({})),
    ...settings.map((name) => `function.${name}`),
    ...["bridge", "admit", "control", "controls", "events", "work", "sweep", "cards"],
    ...["tasks", "function", "due"],
    ...["a2a.v1.event.<runtime>.>", "A2A_EVENTS", "$KV.A2A_PEERS.<runtime>", "max_bytes", "max_msgs"],
    ...["nats consumer info A2A_TASKS a2a_tasks_<runtime>", "step.run", "timeout", "AbortSignal"],
    ...["<function>", "bridge", "cards", "work"].map((name) => `.sluice/logs/${name}.log`),
    ...["ConcurrentExecutions", "Runtime exited", "Task timed out"],
    ...rowsOf("Alarms").map(([name]) => plain(name)),
    ...Object.keys(REASONS),
    ...errorCode().options,
  ]);
  for (const [name, text] of runbooks)
    for (const word of words(text))
      assert.ok(known.has(word) || isCommandLine(word), `docs/runbooks/${name}.md: ${word}`);
});

/** Whether it is a command line of ours, with verbs and options that there are. */
function isCommandLine(text: string): boolean {
  const [name, ...parts] = text.split(" ");
  const [verb, of] = [
    parts.filter((part) => !part.startsWith("-")),
    parts.filter((part) => part.startsWith("-")),
  ];
  const command = verb.reduce<Command | undefined>(
    (at, part) => at?.commands.find((each) => each.name() === part),
    program(),
  );
  return (
    name === "./sluice" &&
    command !== undefined &&
    of.every((each) => command.options.some(({ long }) => long === each))
  );
}

test("whatever any page names like a metric or an alarm of ours is one", () => {
  const pages = readdirSync(join(ROOT, "docs"), { encoding: "utf8" }).filter((name) => name.endsWith(".md"));
  const begins = [...new Set(Object.keys(METRICS).map((name) => /^[A-Z][a-z]+/.exec(name)?.[0] ?? ""))];
  const likeMetric = new RegExp(`^(${begins.join("|")})[A-Z][A-Za-z]+$`);
  const likeAlarm = new RegExp(`^(${RUNBOOKS.join("|")})(-[a-z<-]+>?)?$`);
  const known = new Set([...Object.keys(METRICS), ...RUNBOOKS, ...alarmIds]);
  let seen = 0;
  for (const name of pages)
    for (const word of words(read(name)))
      if (likeMetric.test(word) || likeAlarm.test(word)) {
        seen++;
        assert.ok(known.has(word) || word.endsWith(">"), `docs/${name}: ${word}`);
      }
  assert.ok(seen > Object.keys(METRICS).length);
});

test("the metrics that the local host says it measures are those that it does", () => {
  const watched = readFileSync(join(ROOT, "infra/local/metrics/watch.ts"), "utf8");
  const rows = read("local-host.md").match(/^\| `AWS\/.*$/gm) ?? [];
  const told = rows.flatMap((row) => words(row.split(" | ")[0] ?? "").slice(1));
  const aws = /"((?:Approximate|Read|Write)\w+|Invocations|Errors|Duration|Throttles|ConcurrentExecutions)"/g;
  const measured = Array.from(watched.matchAll(aws), ([, name]) => name);
  assert.deepEqual([...new Set(told)].toSorted(), [...new Set(measured)].toSorted());
});

test("each metric and each log field of the catalogue is written by some function", () => {
  const catalogue = /shared\/telemetry\/(metrics|fields)\.ts$/;
  const sources = globSync("{shared,functions}/**/*.ts", { cwd: ROOT }).filter(
    (file) => !catalogue.test(file),
  );
  const code = sources.map((file) => readFileSync(join(ROOT, file), "utf8")).join("\n");
  for (const name of Object.keys(METRICS)) assert.ok(code.includes(`"${name}"`), name);
  // Of Powertools.
  const usual = new Set(["level", "message", "service", "timestamp", "function_request_id"]);
  for (const field of Object.keys(LOG_FIELDS).filter((name) => !usual.has(name)))
    assert.match(code, new RegExp(`\\b${field}\\b`), field);
});
