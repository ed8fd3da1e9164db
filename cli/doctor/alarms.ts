import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { MetricAlarm } from "@aws-sdk/client-cloudwatch";
import * as z from "zod";
import type { Resource } from "../deployed.ts";
import { AWS_CLIENT, type Place } from "../place.ts";
import { shellQuoted } from "../repeat.ts";
import { cleanLine, localTime } from "../text.ts";
import { examine, type Finding, ok, warning } from "./finding.ts";

/** `alarms.json` of a local host's data folder (docs/local-host.md, "The data folder"). */
const alarmsFile = z.object({
  alarms: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      state: z.string(),
      since: z.iso.datetime().optional().catch(undefined),
    }),
  ),
});

/** An alarm that has risen. */
interface Risen {
  readonly name: string;
  readonly description: string;
  readonly since?: Date | undefined;
}

/** How many alarms are asked for by name at once (Amazon CloudWatch API Reference: DescribeAlarms). */
const PAGE = 100;

/** The pages are named in the alarms' descriptions (infra/observability/index.ts). */
const RUNBOOK = /docs\/runbooks\/[a-z0-9-]+\.md/;

/** Tells which alarms of the local host are in ALARM. */
export async function checkAlarms({ local }: Pick<Place, "local">): Promise<readonly Finding[]> {
  if (local?.dataDir === undefined) return [];
  const path = join(local.dataDir, "alarms.json");
  if (!existsSync(path)) return [];
  return examine("alarms", "start the local host again, which writes them anew", async () => {
    const { alarms } = alarmsFile.parse(JSON.parse(await readFile(path, "utf8")));
    const risen = alarms.filter(({ state }) => state === "ALARM");
    // Under a time scale the metrics' clock is not ours, and no time is told.
    const isOurTime = local.timeScale === 1;
    const at = (since: string | undefined) =>
      since === undefined || !isOurTime ? undefined : new Date(since);
    return risenFindings(
      risen.map(({ since, ...of }) => ({ ...of, since: at(since) })),
      alarms.length,
    );
  });
}

/** Tells which alarms of a deployed stack are in ALARM, and which tell nobody when they are. */
export async function checkStackAlarms(resources: readonly Resource[]): Promise<readonly Finding[]> {
  const names = resources.filter(({ type }) => type === "AWS::CloudWatch::Alarm").map(({ name }) => name);
  if (names.length === 0) return [];
  return examine("alarms", "allow cloudwatch:DescribeAlarms, to know", async () => {
    const alarms = await alarmsCalled(names);
    const risen = alarms
      .filter(({ StateValue }) => StateValue === "ALARM")
      .map(
        ({
          AlarmName: name = "",
          AlarmDescription: description = "",
          StateTransitionedTimestamp: since,
        }) => ({ name, description, since }),
      );
    const gone = names.filter((name) => !alarms.some(({ AlarmName }) => AlarmName === name));
    return [
      ...risenFindings(risen, names.length),
      ...silentFindings(alarms),
      ...gone.map((name) => warning(`alarm ${cleanLine(name, 128)}`, "does not exist any more", DEPLOY)),
    ];
  });
}

async function alarmsCalled(names: readonly string[]): Promise<readonly MetricAlarm[]> {
  const { CloudWatchClient, paginateDescribeAlarms } = await import("@aws-sdk/client-cloudwatch");
  const client = new CloudWatchClient(AWS_CLIENT);
  try {
    const alarms: MetricAlarm[] = [];
    for (let at = 0; at < names.length; at += PAGE) {
      const AlarmNames = names.slice(at, at + PAGE);
      for await (const page of paginateDescribeAlarms({ client, pageSize: PAGE }, { AlarmNames }))
        alarms.push(...(page.MetricAlarms ?? []));
    }
    return alarms;
  } finally {
    client.destroy();
  }
}

const DEPLOY = "deploy the stack again";

/** Alarms of which nobody is told: somebody has turned that off, or taken it away. */
function silentFindings(alarms: readonly MetricAlarm[]): Finding[] {
  const namesOf = (which: readonly MetricAlarm[]) => which.map(({ AlarmName = "" }) => AlarmName);
  const none = namesOf(alarms.filter(({ AlarmActions = [] }) => AlarmActions.length === 0));
  const off = namesOf(
    alarms.filter(
      ({ AlarmName = "", ActionsEnabled }) => ActionsEnabled === false && !none.includes(AlarmName),
    ),
  );
  const enable = `aws cloudwatch enable-alarm-actions --alarm-names ${off.map(shellQuoted).join(" ")}`;
  return [
    ...(off.length === 0 ? [] : [silent(off, "disabled", enable)]),
    ...(none.length === 0 ? [] : [silent(none, "none", DEPLOY)]),
  ];
}

function silent(names: readonly string[], actions: string, todo: string): Finding {
  const says = `nobody is told of ${names.length}, whose actions are ${actions}: ${names.join(", ")}`;
  return warning("alarms", cleanLine(says, 1_000), todo);
}

function risenFindings(risen: readonly Risen[], of: number): Finding[] {
  return risen.length === 0 ? [ok("alarms", `none of ${of} is in ALARM`)] : risen.map(risenFinding);
}

function risenFinding({ name, description, since }: Risen): Finding {
  const page = RUNBOOK.exec(description)?.[0];
  const what = cleanLine(description.replace(/\s*Runbook: \S+$/, ""), 500);
  const at = since === undefined ? "" : ` since ${localTime(since)}`;
  return warning(
    `alarm ${cleanLine(name, 128)}`,
    `in ALARM${at}: ${what}`,
    page === undefined ? "see docs/runbooks" : `see ${page}`,
  );
}
