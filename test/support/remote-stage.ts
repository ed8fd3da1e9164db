import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { awsSettings } from "../../infra/local/aws.ts";
import { synthesize } from "../../infra/synth.ts";
import { dynamoPeers } from "../../shared/cards/dynamodb-peers.ts";
import { fetchCard } from "../../shared/remotes/fetch-card.ts";
import { controlMessage } from "../../shared/wire/index.ts";
import { legacyServer, pollingServer, type RemoteServer, streamingServer } from "../remotes/servers/index.ts";
import type { Logged } from "./event-log.ts";
import { SENDER } from "./sluice.ts";
import { type Stage, startStage } from "./stage.ts";
import { until } from "./until.ts";

/** The hosted agents, which are remote ones: of A2A 1.0 with streams and without, and of A2A 0.3. */
export const FRONTS = ["streaming", "polling", "legacy"] as const;
export type FrontId = (typeof FRONTS)[number];

/** The credential that the streaming server wants. */
export const BEARER = "a-bearer-of-the-tests";
const TIME_SCALE = 20;

/** A task at one of the fronts. */
export interface Asked {
  readonly id: FrontId;
  readonly taskId: string;
}

/** A host whose agents are remote ones, and the three servers that these are. */
export interface RemoteStage extends Stage {
  readonly servers: Record<FrontId, RemoteServer>;
  /** Has a front do what a script says (test/remotes/servers/script.ts). */
  script(id: FrontId, lines: readonly string[], delivery?: { readonly timeoutSec?: number }): Promise<Asked>;
  /** Waits until the task's requester was told something, and gives it. */
  told(task: Asked, what: RegExp): Promise<Logged>;
  /** Answers the question that the task asks. */
  answer(task: Asked, what: RegExp, a2a: unknown): Promise<void>;
  cancel(task: Asked): Promise<void>;
  /** Waits until the task is over, and gives its last event. */
  end(task: Asked): Promise<Logged["event"]>;
  /** How often the task's first message was executed. */
  executed(task: Asked): number;
  /** The ids of the task at its server. */
  idThere(task: Asked): string | undefined;
}

/** Starts the servers, and a host whose only agents they are. */
export async function startRemoteStage(): Promise<RemoteStage> {
  const servers = {
    streaming: await streamingServer({
      authorize: ({ headers }) => headers.authorization === `Bearer ${BEARER}`,
    }),
    polling: await pollingServer(),
    legacy: await legacyServer(),
  };
  const folder = mkdtempSync(join(tmpdir(), "sluice-remotes-"));
  const closeServers = () =>
    Promise.all(Object.values(servers).map((server) => server.close().catch(() => {})));
  const stage = await stageWith(folder, servers).catch(async (error: unknown) => {
    await closeServers();
    throw error;
  });
  const { host, peer } = stage.sluice;
  const ddb = new DynamoDBClient(awsSettings(host.endpoints.dynamodb));
  const peers = dynamoPeers({ client: DynamoDBDocumentClient.from(ddb), table: host.tableName });
  for (const id of FRONTS) await knowCard(peers, id, servers[id].url);
  ddb.destroy();

  const runtime = (id: FrontId) => `acme-${id}`;
  const control = async (
    { id, taskId }: Asked,
    of: Pick<Parameters<typeof controlMessage>[0], "kind" | "a2a" | "revision">,
  ) => {
    const createdAt = new Date().toISOString();
    const { subject, msgId, body } = controlMessage({
      from: SENDER,
      to: runtime(id),
      taskId,
      createdAt,
      ...of,
    });
    await peer.publish(subject, msgId, body);
  };
  const revision = ({ taskId }: Asked) => stage.log.of(taskId).at(-1)?.event.revision ?? 0;
  const remote: RemoteStage = {
    ...stage,
    servers,
    async script(id, lines, delivery = {}) {
      const a2a = { parts: [{ text: lines.join("\n") }] };
      const { taskId } = await peer.ask(runtime(id), { a2a, channelRef: id, skillId: "script", delivery });
      return { id, taskId };
    },
    told: ({ taskId }, what) =>
      until(
        `${what} of ${taskId}`,
        () =>
          stage.log
            .of(taskId)
            .find(({ kind, event }) => what.test(`${kind} ${event.state} ${event.content}`)),
        {
          seen: () =>
            stage.log.of(taskId).map(({ event }) => `${event.kind} ${event.state} ${event.content}`),
        },
      ),
    async answer(task, what, a2a) {
      await remote.told(task, what);
      const kind = typeof a2a === "object" && a2a !== null && "approve" in a2a ? "auth_reply" : "input_reply";
      await control(task, { kind, a2a, revision: revision(task) + 1 });
    },
    cancel: (task) => control(task, { kind: "cancel", revision: revision(task) + 1 }),
    async end({ taskId }) {
      await stage.over(taskId);
      const last = stage.log.of(taskId).at(-1)?.event;
      assert.ok(last);
      return last;
    },
    executed: ({ id, taskId }) => servers[id].executed(`${taskId}-1`),
    idThere: ({ id, taskId }) =>
      servers[id].executions.find(({ messageId }) => messageId === `${taskId}-1`)?.taskId,
    async stop() {
      await stage.stop();
      await closeServers();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return remote;
}

async function stageWith(folder: string, servers: Readonly<Record<FrontId, RemoteServer>>): Promise<Stage> {
  const { assemblyDir } = await synthesize(filesIn(folder, servers));
  return await startStage({ assemblyDir, timeScale: TIME_SCALE });
}

/** The operator's file, and a folder without an agent. */
function filesIn(folder: string, servers: Readonly<Record<FrontId, RemoteServer>>) {
  const agentsDir = join(folder, "agents");
  mkdirSync(agentsDir);
  writeFileSync(join(folder, "bearer"), `${BEARER}\n`);
  const agentsYaml = join(folder, "agents.yaml");
  const { streaming, polling, legacy } = servers;
  writeFileSync(
    agentsYaml,
    `deployment: acme
defaults: { acceptFromRuntimes: [${SENDER}], statusEverySec: 0 }
agents:
  streaming: { remote: streamer }
  polling: { remote: poller, function: {} }
  legacy: { remote: elder }
remotes:
  - { name: streamer, url: "${streaming.url}", streaming: true, auth: { scheme: bearer, credentials: file:bearer } }
  - { name: poller, url: "${polling.url}", skills: [script] }
  - { name: elder, url: "${legacy.url}", streaming: true }
outbound: { allow: ["${streaming.origin}", "${polling.origin}", "${legacy.origin}"] }
`,
  );
  return { agentsDir, agentsYaml, outDir: join(folder, "cdk.out") };
}

const NAMES: Readonly<Record<FrontId, string>> = {
  streaming: "streamer",
  polling: "poller",
  legacy: "elder",
};

/** What the function `cards` does when it refreshes a card: these tests do not wait for it. */
async function knowCard(peers: ReturnType<typeof dynamoPeers>, front: FrontId, url: string): Promise<void> {
  const fetched = await fetchCard({ url, send: (to, init) => fetch(to, init), now: Date.now });
  assert.ok(fetched.kind === "card", JSON.stringify(fetched));
  const { card, path } = fetched;
  const id = NAMES[front];
  const facts = { transport: "http" as const, id, url, path, card, notes: [], firstSeen: Date.now() };
  await peers.putFacts({ ...facts, signature: { state: "unsigned" } }, 0);
}
