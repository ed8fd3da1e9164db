import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { FUNCTION_NAMES, ROOT } from "../../infra/bundle.ts";
import { SynthError, synthesize } from "../../infra/synth.ts";

const scratch = mkdtempSync(join(tmpdir(), "sluice-synth-"));
after(() => rmSync(scratch, { recursive: true }));

const agentsDir = join(scratch, "agents");
const agentsYaml = join(scratch, "agents.yaml");
const outDir = join(scratch, "out");
mkdirSync(agentsDir);

function write(
  greeting: string,
  yaml = "deployment: acme\nagents: { greeter: { acceptFromRuntimes: ['*'] } }",
) {
  writeFileSync(
    join(agentsDir, "greeter.ts"),
    `import { defineAgent, skill } from "sluice";
     import * as z from "zod";
     const task = skill({ name: "Greet", description: "Greets", input: z.string(), run: () => "${greeting}" });
     export default defineAgent({ id: "greeter", description: "Greets", skills: { task } });`,
  );
  writeFileSync(agentsYaml, yaml);
}
const run = () => synthesize({ agentsDir, agentsYaml, outDir });
const madeAt = () => statSync(join(outDir, "sluice-acme.template.json")).mtimeMs;
const bundlesOf = (templatePath: string) =>
  readFileSync(templatePath, "utf8").match(/"S3Key": "[0-9a-f]+/g) ?? assert.fail("no bundles");

test("agents of any folder become a stack; unchanged sources are not synthesized again", async () => {
  write("hello");
  const first = await run();
  assert.deepEqual(first, {
    assemblyDir: outDir,
    templatePath: join(outDir, "sluice-acme.template.json"),
    stackName: "sluice-acme",
  });
  const bundles = bundlesOf(first.templatePath);
  assert.equal(bundles.length, FUNCTION_NAMES.length);

  const before = madeAt();
  assert.deepEqual(await run(), first);
  assert.equal(madeAt(), before);

  // Another word of an agent's is another bundle of the function that runs it, and of no other.
  write("good morning");
  const changed = bundlesOf((await run()).templatePath);
  assert.notEqual(madeAt(), before);
  assert.equal(changed.filter((of) => !bundles.includes(of)).length, 1);
});

test("an error of the operator's names file, line and field, and leaves the former stack as it was", async () => {
  write("hello", "deployment: acme\nagents:\n  greeter: { maxQueued: 0 }");
  await assert.rejects(run(), (error) => {
    assert.ok(error instanceof SynthError);
    assert.equal(error.message, `${agentsYaml}:3: agents.greeter.maxQueued: expected at least 1, got 0`);
    return true;
  });
  write("good morning");
  const before = madeAt();
  await run();
  assert.equal(madeAt(), before);
  assert.deepEqual(readdirSync(scratch).toSorted(), ["agents", "agents.yaml", "out"]);
});

test("several at once give one stack", async () => {
  write("good evening");
  const [one, other] = await Promise.all([run(), run()]);
  assert.deepEqual(one, other);
  assert.equal(new Set(bundlesOf(one.templatePath)).size, FUNCTION_NAMES.length);
  for (const key of bundlesOf(one.templatePath))
    assert.ok(existsSync(join(outDir, key.replace(/^"S3Key": "/, "asset."), "index.mjs")));
});

test("bundles that cannot be kept take longer, which is told once", async (t) => {
  const { SLUICE_BUNDLES } = process.env;
  process.env.SLUICE_BUNDLES = join(agentsYaml, "bundles");
  t.after(() => {
    if (SLUICE_BUNDLES === undefined) delete process.env.SLUICE_BUNDLES;
    else process.env.SLUICE_BUNDLES = SLUICE_BUNDLES;
  });
  write("good night");
  const told: string[] = [];
  await synthesize({ agentsDir, agentsYaml, outDir, tell: (line) => told.push(line) });
  assert.match(told.join("\n"), /^bundles cannot be kept in .*agents\.yaml\/bundles: ENOTDIR: .*anew$/);
});

test("a file of the operator's that is named must be there", async () => {
  const missing = join(scratch, "nope.yaml");
  await assert.rejects(synthesize({ agentsDir, agentsYaml: missing, outDir }), (error) => {
    assert.ok(error instanceof SynthError);
    assert.equal(error.message, `context config: expected a file, there is none at ${missing}`);
    return true;
  });
});

test("the local host has the bridge as a function, whatever its form, and the stage's name", async () => {
  write("hello", "deployment: acme\ncloud: { stage: dev, bridge: fargate, network: { vpcId: new } }");
  const { stackName, templatePath } = await run();
  assert.equal(stackName, "sluice-acme--dev");
  const template = readFileSync(templatePath, "utf8");
  assert.match(template, /"Description": "Starts bridge each minute"/);
  assert.doesNotMatch(template, /AWS::ECS::Service/);
  assert.equal((await run()).stackName, "sluice-acme--dev");
});

test("an error of an author's names the file", async () => {
  write("hello");
  writeFileSync(join(agentsDir, "broken.ts"), "export default 1;");
  await assert.rejects(run(), /broken\.ts: expected a default export made by defineAgent/);
  writeFileSync(join(agentsDir, "broken.ts"), "process.exit(0);");
  await assert.rejects(
    run(),
    /broken\.ts: the process ended with exit code 0 while this file was being imported$/,
  );
  rmSync(join(agentsDir, "broken.ts"));
});

test("what the disk refuses, as when it is full, is said without a stack trace", async () => {
  const app = join(ROOT, "infra", "app.ts");
  const env = { PATH: process.env.PATH, CDK_OUTDIR: "/dev/null/out" };
  await assert.rejects(promisify(execFile)(process.execPath, [app], { env }), (error) => {
    assert.ok(error instanceof Error && "stderr" in error);
    assert.match(String(error.stderr), /^the stack cannot be made: ENOTDIR: .*\n$/);
    return true;
  });
});

test("npx cdk synth works offline and without an account", async () => {
  const out = join(scratch, "cli");
  await promisify(execFile)("npx", ["cdk", "synth", "--quiet", "--output", out], {
    cwd: ROOT,
    // No credentials, no configuration, and a proxy that leads nowhere.
    env: {
      PATH: process.env.PATH,
      HOME: scratch,
      AWS_EC2_METADATA_DISABLED: "true",
      HTTPS_PROXY: "http://127.0.0.1:1",
      HTTP_PROXY: "http://127.0.0.1:1",
    },
  });
  assert.ok(existsSync(join(out, "sluice-local.template.json")));
});

test("a stage that is no stage is named", async () => {
  const app = join(ROOT, "infra", "app.ts");
  const env = {
    PATH: process.env.PATH,
    CDK_OUTDIR: join(scratch, "staged"),
    CDK_CONTEXT_JSON: '{"stage":"Dev"}',
  };
  await assert.rejects(promisify(execFile)(process.execPath, [app], { env }), (error) => {
    assert.ok(error instanceof Error && "stderr" in error);
    assert.equal(
      error.stderr,
      "context stage: expected 1 to 16 of a-z, 0-9 and -, a letter first, got a text of 3 characters\n",
    );
    return true;
  });
});
