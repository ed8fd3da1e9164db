import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import * as z from "zod";
import { HostError, messageOf } from "./errors.ts";

const resource = z.object({
  Type: z.string(),
  Properties: z.record(z.string(), z.unknown()).default({}),
  Metadata: z.record(z.string(), z.unknown()).default({}),
});

const template = z.object({
  Resources: z.record(z.string(), resource),
  Parameters: z.record(z.string(), z.object({ Default: z.unknown() })).default({}),
  Outputs: z.record(z.string(), z.object({ Value: z.unknown() })).default({}),
});
export type Template = z.infer<typeof template>;

const metadataFile = z.record(z.string(), z.array(z.object({ type: z.string(), data: z.unknown() })));

const manifest = z.object({
  artifacts: z.record(
    z.string(),
    z.object({
      type: z.string(),
      properties: z.object({ templateFile: z.string().optional(), file: z.string().optional() }).default({}),
      additionalMetadataFile: z.string().optional(),
      metadata: metadataFile.optional(),
    }),
  ),
});

const assetManifest = z.object({
  files: z
    .record(
      z.string(),
      z.object({
        source: z.object({ path: z.string().optional() }),
        destinations: z.record(z.string(), z.object({ objectKey: z.string() })),
      }),
    )
    .default({}),
});

/** One stack of a CDK cloud assembly (the folder that `cdk synth` writes), as read from disk. */
export interface Assembly {
  readonly stackName: string;
  readonly template: Template;
  /** The construct path of a logical id below the stack, such as `Tasks/Dead`; absent for hand-written templates. */
  readonly pathOf: ReadonlyMap<string, string>;
  /** The folder of an asset by the object key under which the template refers to it. */
  readonly assets: ReadonlyMap<string, string>;
}

/**
 * Reads the one stack of a cloud assembly.
 *
 * @param dir the folder that holds `manifest.json`
 * @throws HostError `assembly_invalid` naming the file and what is wrong with it
 */
export function readAssembly(dir: string): Assembly {
  const { artifacts } = read(dir, "manifest.json", manifest);
  const stacks = Object.entries(artifacts).filter(([, a]) => a.type === "aws:cloudformation:stack");
  const [stack] = stacks;
  if (stack === undefined || stacks.length > 1)
    throw new HostError("assembly_invalid", `${dir}: expected one stack, found ${stacks.length}`);
  const [stackName, { properties, additionalMetadataFile, metadata }] = stack;
  if (properties.templateFile === undefined)
    throw new HostError("assembly_invalid", `${dir}: the stack ${stackName} names no template file`);

  const entries = metadata ?? (additionalMetadataFile ? read(dir, additionalMetadataFile, metadataFile) : {});
  const pathOf = new Map<string, string>();
  for (const [path, facts] of Object.entries(entries))
    for (const fact of facts)
      if (fact.type === "aws:cdk:logicalId" && typeof fact.data === "string")
        pathOf.set(fact.data, path.split("/").slice(2).join("/"));

  const assets = new Map<string, string>();
  for (const artifact of Object.values(artifacts)) {
    if (artifact.type !== "cdk:asset-manifest" || artifact.properties.file === undefined) continue;
    for (const file of Object.values(read(dir, artifact.properties.file, assetManifest).files))
      for (const { objectKey } of Object.values(file.destinations))
        if (file.source.path !== undefined) assets.set(objectKey, resolve(dir, file.source.path));
  }
  return { stackName, template: read(dir, properties.templateFile, template), pathOf, assets };
}

function read<T>(dir: string, name: string, schema: z.ZodType<T>): T {
  const path = join(dir, name);
  if (!existsSync(path))
    throw new HostError(
      "assembly_invalid",
      `${path}: no such file; expected a folder written by \`cdk synth\``,
    );
  try {
    return schema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : messageOf(error);
    throw new HostError("assembly_invalid", `${path}: ${why}`, { cause: error });
  }
}
