import { setTimeout as sleep } from "node:timers/promises";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import * as z from "zod";
import type { Timing } from "../../shared/config/timing.ts";
import { NatsError } from "../../shared/nats/errors.ts";
import { type Refusal, refusalOf } from "../../shared/nats/refusal.ts";
import { type PulledRuntime, TASKS_STREAM } from "../../shared/nats/streams.ts";
import { CliError, EXIT } from "../errors.ts";
import type { Where } from "../home.ts";
import { natsTrouble, openNats } from "../nats.ts";
import { reasonOf } from "../place.ts";
import { cleanLine } from "../text.ts";
import type { BridgeAdvice } from "./bridge.ts";
import { clockFinding } from "./clock.ts";
import { checkDurables } from "./durables.ts";
import { examine, type Finding, ok, refused, warning, wrong } from "./finding.ts";
import { checkStreams } from "./streams.ts";

const API_MS = 5_000;
/** The first version that can do all that is asked of it. */
const OLDEST = [2, 10] as const;
/** Of its account's storage, when it is time to do something. */
const NEARLY_FULL = 0.8;

/** What is to be found at NATS. */
export interface NatsExpected {
  readonly deployment: string;
  readonly runtimes: readonly PulledRuntime[];
  readonly timing: Timing;
  /** What to do about the bridge of this deployment. */
  readonly bridge: BridgeAdvice;
}

/** Looks at NATS: its server, JetStream, the streams, the durables. Nothing is changed. */
export async function checkNats(where: Where, expected: NatsExpected): Promise<readonly Finding[]> {
  let nc: NatsConnection;
  try {
    nc = await openNats(where, expected.deployment);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return [unconnected(where, error)];
  }
  try {
    const server = serverFinding(where, nc.info?.version ?? "0.0.0");
    return [server, ...(await checkJetStream(nc, expected))];
  } finally {
    await nc.close();
  }
}

/** That NATS is not reached, and what to do about it. */
export function unconnected(where: Where, error: CliError): Finding {
  const { says, todo } =
    error.exitCode === EXIT.unreachable && error.cause instanceof NatsError
      ? natsTrouble(where, error.cause)
      : {
          says: error.message,
          todo: "name what can be read: nats.credentials or --creds, nats.tls.ca or --ca",
        };
  return wrong("NATS", cleanLine(says, 1_000), todo);
}

/** @param version as the server tells it */
export function serverFinding({ servers }: Pick<Where, "servers">, version: string): Finding {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const says = `reached at ${servers.join(", ")}, nats-server ${cleanLine(version)}`;
  const isOld = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
  return isOld ? wrong("NATS", says, `use nats-server ${OLDEST.join(".")} or newer`) : ok("NATS", says);
}

async function checkJetStream(nc: NatsConnection, expected: NatsExpected): Promise<readonly Finding[]> {
  const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: API_MS });
  const account = await accountFinding(jsm);
  // Not to be let in one place says nothing of the others, unless no answer can be heard at all.
  if (account.isRefused !== "publish" && account.finding.level === "wrong") return [account.finding];
  const todo = "see that its user may publish on $JS.API.> (docs/wire.md §13)";
  const [clock, streams, durables] = await Promise.all([
    clockFindings(nc),
    examine("streams", todo, () => checkStreams(jsm, expected.bridge)),
    examine("durables", todo, () => checkDurables(jsm, expected, sleep)),
  ]);
  return [account.finding, ...clock, ...streams, ...durables];
}

async function accountFinding(
  jsm: JetStreamManager,
): Promise<{ readonly finding: Finding; readonly isRefused?: Refusal["operation"] }> {
  try {
    return { finding: await lookAtAccount(jsm) };
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal !== undefined)
      return { finding: refused("JetStream", refusal), isRefused: refusal.operation };
    const says = `does not answer: ${cleanLine(reasonOf(error))}`;
    const todo = "enable it (nats-server -js), or allow it to the user's account";
    return { finding: wrong("JetStream", says, todo) };
  }
}

async function lookAtAccount(jsm: JetStreamManager): Promise<Finding> {
  const { storage, limits } = await jsm.getAccountInfo();
  const share = limits.max_storage > 0 ? storage / limits.max_storage : 0;
  if (share < NEARLY_FULL) return ok("JetStream", "enabled");
  return warning(
    "JetStream",
    `${Math.round(share * 100)} % of the account's storage is taken`,
    "give the account more, or the streams a max_age: a full stream takes no task",
  );
}

const stamped = z.object({ ts: z.iso.datetime({ offset: true }) });

/** The server's answers about a stream tell its time (NATS 2.10). */
async function clockFindings(nc: NatsConnection): Promise<Finding[]> {
  const sentAt = Date.now();
  const answer = await nc
    .request(`$JS.API.STREAM.INFO.${TASKS_STREAM}`, "", { timeout: API_MS })
    .catch(() => undefined);
  const middle = (sentAt + Date.now()) / 2;
  const time = stamped.safeParse(jsonOf(answer?.string())).data?.ts;
  return time === undefined ? [] : [clockFinding("NATS", middle - Date.parse(time))];
}

function jsonOf(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}
