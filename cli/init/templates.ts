import { stringify } from "yaml";
import { commandRuntime } from "../../shared/config/deployment.ts";

/** As the formatter writes it (biome.json, lineWidth). */
const LINE_WIDTH = 110;

/** A property whose value is a text, on as many lines as it takes. */
function property(name: string, value: string): string {
  const json = JSON.stringify(value);
  // Of the two quotes the one of which fewer must be escaped.
  const isBetterSingle = value.split('"').length > value.split("'").length;
  const single = json.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  const quoted = isBetterSingle ? `'${single}'` : json;
  const line = `  ${name}: ${quoted},`;
  return line.length <= LINE_WIDTH ? line : `  ${name}:\n    ${quoted},`;
}

function scalar(value: string): string {
  return stringify(value).trimEnd();
}

/** The text of an agent's file: one skill with one step, which is all that must be understood. */
export function agentText({
  agent,
  description,
}: {
  readonly agent: string;
  readonly description: string;
}): string {
  return `import { defineAgent, skill } from "sluice";
import * as z from "zod";

/** What an agent can do is one file (docs/agents.md). */
export default defineAgent({
  id: ${JSON.stringify(agent)},
${property("description", description)}
  skills: {
    task: skill({
      name: "Greet",
      description: "Takes a text and greets whoever has sent it.",
      input: z.string().min(1),
      async run(task, step) {
        step.status("counting the words");
        // What a step returns is stored: it is not done again when the worker dies after it.
        const words = await step.run("count", () => task.input.trim().split(/\\s+/).length);
        return \`Hello \${task.from}, thank you for \${words} \${words === 1 ? "word" : "words"}.\`;
      },
    }),
  },
});
`;
}

/** The text of the operator's file. */
export function configText({
  deployment,
  agent,
}: {
  readonly deployment: string;
  readonly agent: string;
}): string {
  return `# The operator's file: who this deployment is on NATS and whom its agents work for (docs/configuration.md).
deployment: ${scalar(deployment)}

defaults:
  acceptFromRuntimes: [${scalar(commandRuntime(deployment))}]    # the sluice command; a peer's runtime id opens an agent to that peer

agents:
  ${scalar(agent)}:
    displayName: ${scalar(agent)}
`;
}

/**
 * The text of what tells an editor where the packages of agents are that lie outside of the clone. When they are loaded and
 * bundled nobody reads it.
 */
export function editorText(clone: string): string {
  const packages = `${clone}/node_modules`;
  const config = {
    extends: `${clone}/tsconfig.json`,
    compilerOptions: {
      // As Node.js takes them, without a package.json that says so.
      module: "esnext",
      moduleResolution: "bundler",
      typeRoots: [`${packages}/@types`],
      paths: {
        sluice: [`${clone}/shared/agents/index.ts`],
        "sluice/testing": [`${clone}/testing/index.ts`],
        // The very file that Sluice's own code has, or its schemas would be of another type.
        zod: [`${packages}/zod/index.d.ts`],
        "*": [`${packages}/*`],
      },
    },
    include: ["agents"],
  };
  return `// For editors and type checks alone: where Sluice and its packages are.\n${JSON.stringify(config, null, 2)}\n`;
}
