import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Template } from "aws-cdk-lib/assertions";
import { bundleFunctions, KEPT_BUNDLES } from "../../infra/bundle.ts";
import { letEsbuildGrow } from "../../infra/esbuild-memory.ts";
import { parseDeployment } from "../../shared/config/deployment.ts";
import { sizesOf, startFiles } from "../bench/cold/bundle.ts";
import { deploymentOf, hosted, stackWith, statementsOf } from "./support/stack.ts";

letEsbuildGrow();
const remote = (name: string, credentials: string) => ({
  name,
  url: `https://${name}.example/a2a`,
  auth: { credentials },
});
/** `audit` shares a work function with `support`, `plan` has one of its own; `unused` is nobody here. */
const deployment = parseDeployment({
  ...deploymentOf("support"),
  agents: [
    hosted(86_400),
    { ...hosted(86_400, "audit"), remote: "auditor" },
    { ...hosted(86_400, "plan"), remote: "planner" },
  ],
  remotes: [
    remote("auditor", "secret:acme/auditor"),
    remote("planner", "secret:acme/planner"),
    remote("unused", "env:UNUSED"),
  ],
});

describe("bundles", () => {
  const scratch = mkdtempSync(join(tmpdir(), "sluice-fronts-"));
  after(() => rmSync(scratch, { recursive: true }));
  /** Where the front is in a bundle. */
  const withFront = (folder: string) =>
    readdirSync(folder).filter(
      (file) =>
        file.endsWith(".map") &&
        readFileSync(join(folder, file), "utf8").includes("remotes/front/handler.ts"),
    );
  let folders: Readonly<Record<string, string>>;
  let own: string;
  let bare: string;
  before(async () => {
    const made = await bundleFunctions({
      deployment,
      agentFiles: [],
      ownFunctions: ["plan", "support"],
      outDir: scratch,
      keepIn: KEPT_BUNDLES,
    });
    folders = made.folders;
    own = made.workFolders.get("plan") ?? "";
    bare = made.workFolders.get("support") ?? "";
  });

  test("only functions that work for a remote agent carry what that takes", () => {
    assert.deepEqual(
      Object.entries(folders).flatMap(([name, folder]) => (withFront(folder).length > 0 ? [name] : [])),
      ["work"],
    );
    assert.ok(withFront(own).length > 0);
    assert.deepEqual(withFront(bare), []);
  });

  test("and load it when a task comes, not when they start", () => {
    const { work = "" } = folders;
    const atStart = startFiles(work).map((file) => readFileSync(join(work, `${file}.map`), "utf8"));
    assert.ok(
      atStart.every((map) => !map.includes("remotes/front/handler.ts") && !map.includes("@a2a-js/sdk")),
    );
    assert.ok(sizesOf(work).atStart < sizesOf(bare).atStart * 1.05);
  });
});

describe("grants", () => {
  const template = Template.fromStack(stackWith({ deployment, functions: { plan: {} } }));
  const secretsOf = (role: string) =>
    statementsOf(template, role)
      .filter(({ Action }) => JSON.stringify(Action).includes("GetSecretValue"))
      .flatMap(({ Resource }) =>
        [...JSON.stringify(Resource).matchAll(/secret:(acme\/\w+)-/g)].map(([, name]) => name),
      );

  test("each work function may read the secrets of the remote agents that it works for, and of no other", () => {
    assert.deepEqual(secretsOf("workRole"), ["acme/auditor"]);
    assert.deepEqual(secretsOf("workplanRole"), ["acme/planner"]);
    assert.deepEqual(secretsOf("admitRole"), []);
    assert.deepEqual(secretsOf("controlRole"), []);
  });
});
