import { Command, InvalidArgumentError } from "commander";
import * as z from "zod";
import { readAgentsYaml } from "../shared/config/agents-yaml.ts";
import { ConfigError } from "../shared/config/config-error.ts";
import { loadAgents } from "../shared/config/load-agents.ts";
import { nearest } from "../shared/config/nearest.ts";
import {
  NATS_FUNCTIONS,
  NATS_RESPONSES,
  NATS_USERS,
  type NatsGrant,
  natsGrants,
} from "../shared/nats/permissions.ts";
import { CliError, EXIT } from "./errors.ts";
import { type Output, processOutput } from "./output.ts";
import { currentHome } from "./session.ts";
import { table } from "./table.ts";
import { cleanLine } from "./text.ts";

/** Who else logs in with the credentials of a local host, which the command finds. */
const LOCAL = ["start", "command"] as const;

const FORMATS = ["table", "server", "nsc"] as const;

const natsUser = z.enum(NATS_USERS);
const options = z.object({
  agent: z.string().optional(),
  function: z.array(natsUser).optional(),
  local: z.boolean().default(false),
  format: z.enum(FORMATS).default("table"),
  json: z.boolean().default(false),
});
type Options = z.infer<typeof options>;

export function natsPermissionsCommand(): Command {
  return new Command("nats-permissions")
    .description(
      "print what the deployment's functions, or its operator, need to be allowed on NATS, and nothing more",
    )
    .option("--agent <id>", "only what this agent needs")
    .option(
      "--function <name>",
      `only what this function, or other user, needs (may be repeated): ${NATS_USERS.join(", ")}`,
      (text: string, before: readonly string[] = []) => [...before, oneOf(NATS_USERS)(text)],
    )
    .option("--local", "besides what start and command need, where all log in as one: npm start -- --creds")
    .option(
      "--format <name>",
      "table, server (for the server's configuration) or nsc (commands)",
      oneOf(FORMATS),
    )
    .option("--json", "one JSON object a line, for programs")
    .action(async (given: unknown) => {
      await natsPermissions(options.parse(given));
    });
}

function oneOf(names: readonly string[]): (text: string) => string {
  return (text) => {
    if (names.includes(text)) return text;
    throw new InvalidArgumentError(`Expected one of ${names.join(", ")}.`);
  };
}

async function natsPermissions(given: Options): Promise<void> {
  const out = processOutput(given.json);
  const { deployment, agents } = await readAgents();
  const chosen = given.agent === undefined ? agents : [agentNamed(given.agent, agents)];
  const grants = natsGrants({
    deployment,
    agents: chosen,
    functions: [...(given.function ?? NATS_FUNCTIONS), ...(given.local ? LOCAL : [])],
  });
  for (const grant of grants) out.record(grant);
  if (out.json) return;
  if (given.format === "table") return asTable(out, grants);
  const user = [`sluice-${deployment}`, given.agent && chosen[0]?.id, ...(given.function ?? [])]
    .filter((part) => part !== undefined)
    .join("-");
  const answers = (given.function ?? NATS_RESPONSES.function) === NATS_RESPONSES.function;
  const lines = given.format === "server" ? serverLines : nscLines;
  for (const line of lines(user, grants, answers)) out.line(line);
}

interface Known {
  readonly id: string;
  readonly runtime: string;
  readonly delegates: boolean;
}

/** The agents of the folder, as their files have them. */
async function readAgents(): Promise<{ readonly deployment: string; readonly agents: readonly Known[] }> {
  const home = currentHome({});
  try {
    const { deployment } = readAgentsYaml(home.config, await loadAgents(home.agentsDir));
    const agents = deployment.agents.map(({ id, runtime, policy }) => ({
      id,
      runtime,
      delegates: policy.delegateTargets.length > 0,
    }));
    return { deployment: deployment.deployment, agents };
  } catch (error) {
    if (error instanceof ConfigError) throw new CliError(EXIT.usage, error.message);
    throw error;
  }
}

/** @throws CliError `usage` when there is no such agent */
function agentNamed(name: string, agents: readonly Known[]): Known {
  const found = agents.find(({ id, runtime }) => id === name || runtime === name);
  if (found !== undefined) return found;
  const ids = agents.map(({ id }) => id);
  const [meant] = nearest(name, ids);
  throw new CliError(
    EXIT.usage,
    `no agent ${JSON.stringify(cleanLine(name))}${meant === undefined ? "" : `, did you mean ${meant}?`}; known here are ${ids.join(", ")}`,
  );
}

function asTable(out: Output, grants: readonly NatsGrant[]): void {
  const rows = grants.map(({ kind, subject, functions, why }) => [kind, subject, functions.join(", "), why]);
  for (const line of table(["MAY", "SUBJECT", "FUNCTIONS", "FOR"], rows, out.width)) out.line(line);
}

function subjectsOf(grants: readonly NatsGrant[], kind: NatsGrant["kind"]): string[] {
  return grants.filter((grant) => grant.kind === kind).map(({ subject }) => subject);
}

const KINDS = ["publish", "subscribe"] as const;

/** An entry of `users` (NATS docs: Authorization). */
function serverLines(user: string, grants: readonly NatsGrant[], answers: boolean): string[] {
  const lists = KINDS.flatMap((kind) => {
    const subjects = subjectsOf(grants, kind).map((subject) => `      ${JSON.stringify(subject)}`);
    // To the server an empty list means everything.
    return subjects.length === 0 ? [`    ${kind}: { deny: ">" }`] : [`    ${kind}: [`, ...subjects, "    ]"];
  });
  const password = `$${user.toUpperCase().replaceAll("-", "_")}_PASSWORD`;
  return [
    "{",
    `  user: ${JSON.stringify(user)}, password: ${password}`,
    "  permissions {",
    ...lists,
    ...(answers ? [`    allow_responses: { max: ${max}, expires: ${JSON.stringify(expires)} }`] : []),
    "  }",
    "}",
  ];
}

const { max, expires } = NATS_RESPONSES;
const FLAGS = { publish: "pub", subscribe: "sub" } as const;

/** Makes the user in the account that `nsc` works on (NATS docs: nsc). The quotes are the shell's. */
function nscLines(user: string, grants: readonly NatsGrant[], answers: boolean): string[] {
  const flags = KINDS.flatMap((kind) => {
    const subjects = subjectsOf(grants, kind);
    if (subjects.length === 0) return [`  --deny-${FLAGS[kind]} '>'`];
    return subjects.map((subject) => `  --allow-${FLAGS[kind]} '${subject}'`);
  });
  if (answers) flags.push(`  --allow-pub-response=${max}`, `  --response-ttl ${expires}`);
  return [`nsc add user --name '${user}'`, ...flags].map((line, at) =>
    at < flags.length ? `${line} \\` : line,
  );
}
