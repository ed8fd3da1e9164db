import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import * as z from "zod";
import { TimedOut } from "../../cli/errors.ts";
import {
  delegateFirstTask,
  type FirstTask,
  tellsNoStreams,
  whyGoOn,
  whyNoFirstTask,
} from "../../infra/local/first-task.ts";
import { defineAgent, skill } from "../../shared/agents/index.ts";
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { unmadeStream } from "../../shared/nats/refusal.ts";
import { startNats } from "../support/nats-server.ts";
import { temporaryFolder } from "./support/assembly.ts";

test("a remote agent is sent no first task, whoever it is open to", () => {
  const file = join(temporaryFolder("first"), "agents.yaml");
  writeFileSync(
    file,
    `deployment: acme
defaults: { acceptFromRuntimes: [acme-cli] }
agents: { digest: { remote: theirs } }
remotes: [{ name: theirs, url: "https://theirs.example/a2a" }]
`,
  );
  const { deployment } = readAgentsYaml(file, []);
  assert.deepEqual(
    deployment.agents.map(({ id, skills }) => [id, skills[0]?.slug]),
    [["digest", "task"]],
  );
  assert.equal(whyNoFirstTask(deployment), "no agent of its own is hosted that has the skill task");
});

test("a first task that takes its time does not end the host; what is wrong does", () => {
  assert.match(
    whyGoOn(new TimedOut("task_1", 120_000)) ?? "",
    /^The first task has timed out: task_1 did not end/,
  );
  assert.equal(whyGoOn(new Error("the stream is gone")), undefined);
});

/** The first task to an agent that is there, with nothing wrong that is not said here. */
function firstTaskOf(folder: string, of: Partial<FirstTask> & { readonly url: string }) {
  const task = skill({ name: "Echo", description: "Echoes", input: z.string(), run: ({ input }) => input });
  const agents = [defineAgent({ id: "echo", description: "Echoes", skills: { task } })];
  return delegateFirstTask({
    host: { endpoints: { sqs: "", s3: "", dynamodb: "", nats: of.url } },
    deployment: readAgentsYaml(join(folder, "agents.yaml"), agents).deployment,
    credentials: "none",
    ca: undefined,
    logsDir: folder,
    progress: { doing() {}, line() {}, done() {} },
    signal: new AbortController().signal,
    ...of,
  });
}

test("streams that the bridge may not make are not waited for", async (t) => {
  const server = await startNats();
  t.after(() => server.stop());
  assert.equal(tellsNoStreams("bridge: NatsError: nats://127.0.0.1:1 cannot be reached"), false);
  const words = unmadeStream("A2A_TASKS");
  assert.ok(tellsNoStreams(`bridge: NatsError: ${words}`));
  const noStreams = AbortSignal.abort();
  await assert.rejects(firstTaskOf(temporaryFolder("first"), { url: server.url, noStreams }), {
    message: words,
  });
});

test("a server that does not take who we are is told with the option that says it", async (t) => {
  const folder = temporaryFolder("first");
  const login = join(folder, "login");
  writeFileSync(login, "wrong");
  const server = await startNats(["--auth", "s3cret"]);
  t.after(() => server.stop());
  const first = (credentials: string) => firstTaskOf(folder, { url: server.url, credentials });
  const refused = `^NATS at ${server.url} refused who we are \\(.+\\); `;
  await assert.rejects(first("none"), {
    message: new RegExp(`${refused}give a user's credentials with --creds FILE$`),
  });
  await assert.rejects(first(`file:${login}`), {
    message: new RegExp(`${refused}see that ${login} \\(--creds\\) holds those of a user that it knows$`),
  });
});
