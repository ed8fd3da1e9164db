import * as z from "zod";
import { readYaml } from "../../shared/config/yaml-source.ts";

/** What it is called, and what older deployments call it (docs/policy.md, "Older names"). */
const NAMES = ["acceptFromRuntimes", "acceptFrom"] as const;

const fields = z.record(z.string(), z.unknown()).nullish();
const operatorFile = z.looseObject({ defaults: fields, agents: z.record(z.string(), fields).nullish() });

/**
 * Where an `agents.yaml` says who may ask an agent: of its own, or by the defaults.
 *
 * @param name how the file is called, for people
 * @returns a sentence with the file's line; where the file does not say it, what to add
 * @throws ConfigError when the text is no YAML
 */
export function whoMayAsk(name: string, text: string, agent: string): string {
  const source = readYaml(name, text);
  const { agents, defaults } = operatorFile.safeParse(source.value).data ?? {};
  const places = [
    { path: ["agents", agent], of: agents?.[agent] },
    { path: ["defaults"], of: defaults },
  ];
  const written = places.flatMap(({ path, of }) =>
    NAMES.flatMap((field) => ((of?.[field] ?? null) === null ? [] : [[...path, field]])),
  );
  const [path] = written;
  if (path === undefined)
    return `${name} lets nobody ask ${agent}: give agents.${agent} the field acceptFromRuntimes (docs/configuration.md)`;
  const message = `says who may ask ${agent} (docs/configuration.md)`;
  return source.told([{ path, message }]).join("");
}
