import type { Recording } from "./recording.ts";

/** A figure that others have published of their engine. */
interface Published {
  readonly engine: string;
  readonly what: string;
  readonly figure: string;
  readonly source: string;
}

/** None of these was measured here: each is as its source gives it. */
const PUBLISHED: readonly Published[] = [
  {
    engine: "AWS Lambda durable functions, JavaScript 2.4.0",
    what: "a step of 3,000, median / p95",
    figure: "29 / 39 ms (us-east-1, 1,024 MB)",
    source: "aws-durable-execution-sdk-python#710",
  },
  {
    engine: "AWS Lambda durable functions, Java 2.2.0",
    what: "a step of 3,000, median / p95",
    figure: "32 / 53 ms (us-east-1, 1,024 MB)",
    source: "aws-durable-execution-sdk-python#710",
  },
  {
    engine: "AWS Lambda durable functions, Python 1.7.0",
    what: "a step of 3,000, median / p95",
    figure: "140 / 160 ms (us-east-1, 1,024 MB)",
    source: "aws-durable-execution-sdk-python#710",
  },
  {
    engine: "AWS Lambda durable functions, Python 2.0.1",
    what: "a step of 1,000",
    figure: "~ 41 ms (1,024 MB)",
    source: "aws-durable-execution-sdk-python#738",
  },
  {
    engine: "AWS Lambda durable functions, Java",
    what: "500 steps at once",
    figure: "< 1 s (512 MB)",
    source: "aws-durable-execution-sdk-java#180",
  },
  { engine: "Restate", what: "3 steps", figure: "~ 50 ms", source: "Restate's documentation" },
  {
    engine: "DBOS",
    what: "a checkpoint",
    figure: "1–2 ms",
    source: "DBOS's own benchmark, 2024-09-09",
  },
  {
    engine: "Inngest",
    what: "a step",
    figure: "tens of ms",
    source: "Inngest's documentation (checkpointing)",
  },
  {
    engine: "Temporal",
    what: "a step",
    figure: "tens to hundreds of ms",
    source: "said by DBOS, not by Temporal",
  },
];

const LIMITS: readonly (readonly [engine: string, limit: string, source: string])[] = [
  ["AWS Lambda durable functions", "3,000 operations, 100 MB", "AWS quotas"],
  ["Temporal", "51,200 events, 50 MB", "Temporal's documentation"],
  ["Inngest", "1,000 steps, 4 MB (raisable)", "Inngest's documentation"],
  ["Cloudflare Workflows", "10,000 to 25,000 steps, 1 MiB a step", "Cloudflare's documentation"],
  ["AWS Step Functions", "25,000 events, 256 KB", "AWS quotas"],
];

/** Prints what was measured here beside what others have published. */
export function printPublished(
  out: Recording,
  ours: {
    readonly steps: number;
    readonly stepMs: number;
    readonly parallel: number;
    readonly parallelMs: number;
    readonly replayMs: number;
  },
): void {
  const here = "this run, this machine";
  const ms = (value: number) => `${value.toFixed(value < 1 ? 3 : 1)} ms`;
  out.table(
    ["ENGINE", "WHAT", "FIGURE", "SOURCE"],
    [
      ["Sluice", `a step of ${ours.steps}, median`, ms(ours.stepMs), here],
      ["Sluice", `${ours.parallel} steps at once`, ms(ours.parallelMs), here],
      ["Sluice", "a stored step, gone through again", ms(ours.replayMs), here],
      ...PUBLISHED.map(({ engine, what, figure, source }) => [engine, what, figure, source]),
    ],
  );
  out.note(
    "The others' figures were measured by others, on other machines, most over a network and with what a cloud adds;\n" +
      "ours over a table's stand-in on this machine. In a region each of our steps waits for one PutItem. They tell the\n" +
      "order of magnitude, and not who is faster.",
  );
  out.table(
    ["ENGINE", "LIMIT OF ONE EXECUTION", "SOURCE"],
    [["Sluice", "none by number of steps; 10,000 are tested", "test/steps/large.test.ts"], ...LIMITS],
  );
}
