import manifest from "../../package.json" with { type: "json" };
import { readAgentsYaml } from "../../shared/config/agents-yaml.ts";
import { loadAgents } from "../../shared/config/load-agents.ts";
import { timing } from "../../shared/config/timing.ts";
import type { PulledRuntime } from "../../shared/nats/streams.ts";
import { type Resource, resourcesOf } from "../deployed.ts";
import { type Home, USUAL_SERVER, type Where } from "../home.ts";
import type { Place } from "../place.ts";
import { USUAL_START } from "../start-again.ts";
import { checkAlarms, checkStackAlarms } from "./alarms.ts";
import { bridgeAdvice } from "./bridge.ts";
import { checkBucket } from "./bucket.ts";
import { clockFinding } from "./clock.ts";
import { checkDisk } from "./disk.ts";
import { examine, type Finding, ok, warning } from "./finding.ts";
import { checkFunctions, checkSchedules } from "./functions.ts";
import { checkNats } from "./nats.ts";
import { checkPauses } from "./pauses.ts";
import { checkQueues } from "./queues.ts";
import { checkReaders } from "./roles.ts";
import { checkSecrets, inSecretsManager } from "./secrets.ts";
import { checkService } from "./service.ts";
import { checkTable } from "./storage.ts";
import { nodeFinding, sluiceFinding, stackFinding } from "./versions.ts";

/**
 * Looks at everything there is, and changes nothing.
 *
 * @param where NATS; nothing where that is not known, which is told
 */
export async function examineAll(
  home: Home,
  place: Place | undefined,
  where: Where | undefined,
): Promise<readonly Finding[]> {
  const agents = await agentsOf(home);
  if (where === undefined) return [nodeFinding(process.version), ...agents.findings, natsUnknown(home)];
  const credentials = place?.deployed === undefined ? where.credentials : home.operator.credentials;
  const [known, nats, there] = await Promise.all([
    examine("credentials", "see that nats.credentials of agents.yaml names what it should", () =>
      checkSecrets(credentials, place?.deployed !== undefined, inSecretsManager),
    ),
    checkNats(where, {
      deployment: home.deployment,
      runtimes: agents.runtimes,
      timing: timing(place?.local?.timeScale),
      bridge: bridgeAdvice(place, home.start),
    }),
    Promise.all(
      place === undefined ? [] : [checkPlace(place, home), checkPauses(place, home, agents.runtimes)],
    ),
  ]);
  // Credentials that cannot be read keep NATS from being asked, too: that is one thing to mend.
  const isSaid = ({ says }: Finding) => known.some((of) => of.level === "wrong" && of.says === says);
  const more = nats.filter((finding) => !isSaid(finding));
  return [nodeFinding(process.version), ...agents.findings, ...known, ...more, ...there.flat()];
}

function natsUnknown({ isStopped }: Home): Finding {
  return warning(
    "NATS",
    isStopped
      ? `not looked at: no local host runs in this folder, and at ${USUAL_SERVER} there may be another's`
      : "not looked at: the stack's outputs tell where it is, and it cannot be read",
    "see above, or name it with --nats and --creds",
  );
}

/** The hosted agents, as their files have them. */
async function agentsOf(
  home: Home,
): Promise<{ readonly runtimes: readonly PulledRuntime[]; readonly findings: readonly Finding[] }> {
  let runtimes: PulledRuntime[] = home.agents.map((id) => ({
    runtime: `${home.deployment}-${id}`,
    delegates: false,
  }));
  const findings = await examine("agents", "mend what it names, and look again", async () => {
    const agents = await loadAgents(home.agentsDir);
    const { deployment } = readAgentsYaml(home.config, agents);
    runtimes = deployment.agents.map(({ runtime, policy }) => ({
      runtime,
      delegates: policy.delegateTargets.length > 0,
    }));
    return [ok("agents", `${runtimes.length} in ${home.agentsDir}`)];
  });
  return { runtimes, findings };
}

async function checkPlace(place: Place, { start = USUAL_START }: Home): Promise<readonly Finding[]> {
  const { deployed, local } = place;
  const allow = (actions: string) =>
    local === undefined
      ? `allow ${actions}, and see that the region is right`
      : `start the local host again: ${start}`;
  const found = await Promise.all([
    examine("table", allow("dynamodb:DescribeTable"), () => checkTable(place)),
    examine("bucket", allow("s3:ListBucket"), () => checkBucket(place)),
    checkQueues(place),
    checkAlarms(place),
    checkDisk(place),
    ...(deployed === undefined ? [] : [checkDeployed(deployed.name, place)]),
  ]);
  return [
    ...(local === undefined ? [] : [ok("local host", `runs as process ${local.pid}`)]),
    ...(deployed === undefined ? [] : [stackFinding(deployed)]),
    ...(deployed?.aheadMs === undefined ? [] : [clockFinding("AWS", deployed.aheadMs)]),
    sluiceFinding(place, manifest.version),
    ...found.flat(),
  ];
}

/** What the local host runs for as long as it runs itself, and AWS can be told to run or not. */
async function checkDeployed(name: string, place: Place): Promise<readonly Finding[]> {
  let resources: readonly Resource[] = [];
  const trouble = await examine("stack's resources", "allow cloudformation:ListStackResources", async () => {
    resources = await resourcesOf(name);
    return [];
  });
  const found = await Promise.all([
    checkFunctions(resources),
    checkSchedules(resources),
    checkService(resources),
    checkStackAlarms(resources),
    checkReaders(place, resources),
  ]);
  return [...trouble, ...found.flat()];
}
