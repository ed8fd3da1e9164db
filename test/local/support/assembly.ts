import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

process.setMaxListeners(0); // one for each temporary folder

/** A function of a hand-written stack: its source, and what its template declares beside the defaults. */
export interface TestFunction {
  /** The text of `index.mjs`. */
  readonly source: string;
  readonly properties?: Readonly<Record<string, unknown>>;
}

export interface TestStack {
  readonly functions?: Readonly<Record<string, TestFunction>>;
  /** Further resources, as CloudFormation has them. */
  readonly resources?: Readonly<Record<string, unknown>>;
}

/** A new folder of a test's own, removed when the test's process ends. */
export function temporaryFolder(name: string): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `sluice-${name}-`)));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes a cloud assembly as `cdk synth` would, of one hand-written stack, and returns its folder. */
export function writeAssembly(stack: TestStack): string {
  const dir = temporaryFolder("assembly");
  const functions = Object.entries(stack.functions ?? {});
  const write = (name: string, value: unknown) =>
    writeFileSync(join(dir, name), JSON.stringify(value, null, 1));
  const files: Record<string, unknown> = {};
  const resources: Record<string, unknown> = { ...stack.resources };
  for (const [id, { source, properties }] of functions) {
    mkdirSync(join(dir, `asset.${id}`));
    writeFileSync(join(dir, `asset.${id}`, "index.mjs"), source);
    files[id] = { source: { path: `asset.${id}` }, destinations: { here: { objectKey: `${id}.zip` } } };
    resources[id] = {
      Type: "AWS::Lambda::Function",
      Properties: {
        Runtime: "nodejs24.x",
        Handler: "index.handler",
        Code: { S3Bucket: { "Fn::Sub": "assets-$" + "{AWS::Region}" }, S3Key: `${id}.zip` },
        Timeout: 10,
        MemorySize: 256,
        ...properties,
      },
    };
  }
  write("manifest.json", {
    version: "1.0.0",
    artifacts: {
      "Test.assets": { type: "cdk:asset-manifest", properties: { file: "Test.assets.json" } },
      Test: { type: "aws:cloudformation:stack", properties: { templateFile: "Test.template.json" } },
    },
  });
  write("Test.assets.json", { version: "1.0.0", files });
  write("Test.template.json", { Resources: resources });
  return dir;
}

/** A queue with a dead-letter queue, as resources `<id>` and `<id>Dead`. */
export function queueWithDead(
  id: string,
  visibility: number,
  maxReceiveCount: number,
): Record<string, unknown> {
  return {
    [id]: {
      Type: "AWS::SQS::Queue",
      Properties: {
        QueueName: id,
        VisibilityTimeout: visibility,
        RedrivePolicy: { deadLetterTargetArn: { "Fn::GetAtt": [`${id}-dead`, "Arn"] }, maxReceiveCount },
      },
    },
    [`${id}-dead`]: { Type: "AWS::SQS::Queue", Properties: { QueueName: `${id}-dead` } },
  };
}

/** An event source mapping from a queue to a function. */
export function mapping(queue: string, fn: string, properties: Record<string, unknown> = {}): unknown {
  return {
    Type: "AWS::Lambda::EventSourceMapping",
    Properties: {
      EventSourceArn: { "Fn::GetAtt": [queue, "Arn"] },
      FunctionName: { Ref: fn },
      BatchSize: 10,
      FunctionResponseTypes: ["ReportBatchItemFailures"],
      ...properties,
    },
  };
}
