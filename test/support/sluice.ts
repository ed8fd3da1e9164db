import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Host, type HostOptions, startHost } from "../../infra/local/host.ts";
import { synthesize } from "../../infra/synth.ts";
import { startNats, type TestNats } from "./nats-server.ts";
import { Peer } from "./peer.ts";
import { noteCalls, SEEN_CALLS_FILE } from "./seen-calls.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const FIXTURES = join(ROOT, "test/fixtures/deployment");

/** The sender that the test deployment's agents accept. */
export const SENDER = "adam-lobby-1a2b3c4d";

export interface Sluice {
  readonly host: Host;
  readonly nats: TestNats;
  readonly peer: Peer;
  readonly dataDir: string;
  /** What the functions and the host have said, line by line. */
  readonly lines: string[];
  /** Stops the host, keeping its data and NATS. */
  stopHost(): Promise<void>;
  startHost(): Promise<void>;
  stop(): Promise<void>;
}

/** The synthesized stack of `test/fixtures/deployment`; gives its folder. */
export async function testAssembly(): Promise<string> {
  const { assemblyDir } = await synthesize({
    agentsDir: join(FIXTURES, "agents"),
    agentsYaml: join(FIXTURES, "agents.yaml"),
    outDir: join(ROOT, ".cache/test-assembly"),
  });
  return assemblyDir;
}

/**
 * The whole product over real parts: the synthesized stack of `test/fixtures/deployment` (deployment `acme`, agents
 * `support`, `faulty`, …) on a local host, with a nats-server of its own that the host is told to use.
 */
export async function startSluice(options: Partial<HostOptions> = {}): Promise<Sluice> {
  const assemblyDir = options.assemblyDir ?? (await testAssembly());
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-e2e-"));
  const nats = await startNats();
  const lines: string[] = [];
  const seenFile = process.env[SEEN_CALLS_FILE];
  const start = () =>
    startHost({
      dataDir,
      ...(seenFile !== undefined && { route: noteCalls(seenFile, () => current?.functions() ?? []) }),
      assemblyDir,
      nats: { servers: [nats.url] },
      timeScale: 20,
      log: (event) =>
        lines.push(event.type === "line" ? `${event.functionName}: ${event.line}` : event.message),
      ...options,
    });
  let current: Host | undefined;
  let host = await start();
  current = host;
  const peer = await Peer.connect(nats.url, SENDER);
  return {
    get host() {
      return host;
    },
    nats,
    peer,
    dataDir,
    lines,
    stopHost: () => host.stop(),
    async startHost() {
      host = await start();
      current = host;
    },
    async stop() {
      await peer.close();
      await host.stop();
      await nats.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
