import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { CONTEXT_OPTIONS } from "../../infra/context.ts";
import { BRIDGE_CONCURRENCY, BRIDGE_SERVICE_SIZE, CONSUMPTION, FUNCTION_SIZES } from "../../infra/sizes.ts";
import { operatorFile } from "../../shared/config/agents-yaml.ts";
import { agentFunction, cloudConfig } from "../../shared/config/cloud.ts";
import { ownFields } from "../../shared/config/host-agent.ts";
import { policyFields } from "../../shared/config/policy.ts";
import { type Cell, markdownTable } from "../report/markdown.ts";
import { furtherTable, millionTable, monthTable } from "./costs.ts";
import { fieldRows, fieldTable } from "./fields.ts";
import { variableTable } from "./variables.ts";

export const DOCS = resolve(import.meta.dirname, "../../docs");

interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

/** What the program writes into each page, by the names of the places. */
export const WRITTEN: Readonly<Record<string, Readonly<Record<string, () => Table>>>> = {
  "configuration.md": {
    sections: () => fieldTable(fieldRows(operatorFile.shape, ["cloud"])),
    agent: () => fieldTable(fieldRows(ownFields, ["function"])),
    policy: () => fieldTable(fieldRows(policyFields)),
    cloud: () => fieldTable(fieldRows(cloudConfig.shape)),
    function: () => fieldTable(fieldRows(agentFunction.shape)),
    context: contextTable,
    variables: variableTable,
    functions: functionTable,
  },
  "cost.md": {
    limited: () => millionTable(true),
    unlimited: () => millionTable(false),
    further: furtherTable,
    month: monthTable,
  },
};

const place = (name: string) => `<!-- ${name}: written by npm run docs -->`;
const END = "<!-- end -->";

/**
 * A page as the program writes it: what stands between the places' marks is replaced, everything else stays.
 *
 * @throws Error when the page has not each of its places once, or one that is not known
 */
export function writtenPage(page: string, text = readFileSync(join(DOCS, page), "utf8")): string {
  const tables = WRITTEN[page] ?? {};
  const found = Array.from(text.matchAll(/<!-- (\S+): written by npm run docs -->/g), ([, name]) => name);
  if (found.toSorted().join() !== Object.keys(tables).toSorted().join())
    throw new Error(`docs/${page}: expected the places ${Object.keys(tables)}, got ${found}`);
  return Object.entries(tables).reduce((all, [name, table]) => {
    const [before = "", after = ""] = all.split(place(name));
    const end = after.indexOf(END);
    if (end < 0) throw new Error(`docs/${page}: the place ${name} has no end`);
    const { head, rows } = table();
    return `${before}${[place(name), "", ...markdownTable(head, rows), ""].join("\n")}\n${after.slice(end)}`;
  }, text);
}

function contextTable(): Table {
  return {
    head: ["context", "default", "meaning"],
    rows: Object.values(CONTEXT_OPTIONS).map((of) => [`\`-c ${of.usage}\``, of.fallback, of.meaning]),
  };
}

const { cpu, memoryMb: serviceMb } = BRIDGE_SERVICE_SIZE;
/** Fargate counts CPU in 1,024ths (ECS Developer Guide, "Task CPU and memory"). */
const CPU_UNITS = 1_024;
const STARTED: Readonly<Record<string, string>> = {
  bridge: `each minute, at most ${BRIDGE_CONCURRENCY} at once, so that a new run takes over from the old; as a service it has ${cpu / CPU_UNITS} of a CPU and ${serviceMb} MB`,
  sweep: "each minute",
  cards: "each minute",
};

function functionTable(): Table {
  const queues = Object.entries(CONSUMPTION);
  return {
    head: ["function", "memory", "timeout", "started by"],
    rows: Object.entries(FUNCTION_SIZES).map(([name, { memoryMb, timeoutSec }]) => {
      const [queue, source] = queues.find(([, { consumer }]) => consumer === name) ?? [];
      const by =
        source === undefined
          ? (STARTED[name] ?? "")
          : `queue \`${queue}\`, messages in an invocation at most ${source.batchSize}, invocations at once at most ${source.maxConcurrency}`;
      return [`\`${name}\``, `${memoryMb} MB`, `${timeoutSec} s`, by];
    }),
  };
}
