import {
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  type TableDescription,
} from "@aws-sdk/client-dynamodb";
import { clientSettings, type Place } from "../place.ts";
import { examine, type Finding, isMissing, ok, warning, wrong } from "./finding.ts";

/** As infra/storage.ts declares them. */
const KEYS = "pk HASH, sk RANGE";
const INDEX = { name: "due", keys: "dueShard HASH, dueAt RANGE" };
const TTL = "expiresAt";

/** Looks at the table: that it takes requests, its keys, its index; and in AWS its time to live and its backups. */
export async function checkTable(place: Place): Promise<readonly Finding[]> {
  const client = new DynamoDBClient(clientSettings(place, "dynamodb"));
  const TableName = place.outputs.TableName;
  const part = "table";
  try {
    const { Table } = await client.send(new DescribeTableCommand({ TableName }));
    // The local host declares both, and does neither (docs/local-host.md).
    const kept = place.local ? [] : await keptFindings(client, TableName);
    return [...tableFindings(Table ?? {}), ...kept];
  } catch (error) {
    if (!isMissing(error)) throw error;
    return [
      wrong(
        part,
        `${TableName} does not exist`,
        "deploy the stack again; what was in it is in a backup, if anywhere",
      ),
    ];
  } finally {
    client.destroy();
  }
}

type Keys = TableDescription["KeySchema"];
const textOf = (keys: Keys) => (keys ?? []).map((key) => `${key.AttributeName} ${key.KeyType}`).join(", ");

function tableFindings({
  TableName = "",
  TableStatus,
  KeySchema,
  GlobalSecondaryIndexes,
}: TableDescription): Finding[] {
  const again = "wait until it is ACTIVE, and look again";
  const deploy = "deploy the stack again";
  const index = GlobalSecondaryIndexes?.find(({ IndexName }) => IndexName === INDEX.name);
  const findings: Finding[] = [];
  if (textOf(KeySchema) !== KEYS)
    findings.push(wrong("table", `its keys are ${textOf(KeySchema)} instead of ${KEYS}`, deploy));
  else if (TableStatus === "ACTIVE") findings.push(ok("table", `${TableName} is ACTIVE`));
  else if (TableStatus === "UPDATING") findings.push(warning("table", `${TableName} is UPDATING`, again));
  else findings.push(wrong("table", `${TableName} is ${TableStatus}`, again));
  if (index === undefined)
    findings.push(wrong("table index", `${INDEX.name} does not exist: nothing that is due is found`, deploy));
  else if (textOf(index.KeySchema) !== INDEX.keys)
    findings.push(
      wrong("table index", `its keys are ${textOf(index.KeySchema)} instead of ${INDEX.keys}`, deploy),
    );
  else if (index.IndexStatus === "ACTIVE" || index.IndexStatus === undefined)
    findings.push(ok("table index", `${INDEX.name} is ACTIVE`));
  else findings.push(wrong("table index", `${INDEX.name} is ${index.IndexStatus}`, again));
  return findings;
}

async function keptFindings(client: DynamoDBClient, TableName: string): Promise<readonly Finding[]> {
  const allow = (action: string) => `allow dynamodb:${action} on the table, to know`;
  const [ttl, backups] = await Promise.all([
    examine("time to live", allow("DescribeTimeToLive"), async () => {
      const answer = await client.send(new DescribeTimeToLiveCommand({ TableName }));
      const { TimeToLiveStatus: status, AttributeName: name } = answer.TimeToLiveDescription ?? {};
      if (status === "ENABLED" && name === TTL) return [ok("time to live", `by ${TTL}`)];
      return [
        warning(
          "time to live",
          `is ${status ?? "unknown"}${name === undefined ? "" : ` by ${name}`}: records are kept for ever`,
          `enable it by ${TTL}: deploy the stack again`,
        ),
      ];
    }),
    examine("backups", allow("DescribeContinuousBackups"), async () => {
      const answer = await client.send(new DescribeContinuousBackupsCommand({ TableName }));
      const { PointInTimeRecoveryDescription: recovery } = answer.ContinuousBackupsDescription ?? {};
      if (recovery?.PointInTimeRecoveryStatus === "ENABLED")
        return [ok("backups", "point-in-time recovery is enabled")];
      return [
        warning("backups", "point-in-time recovery is off: what is lost is lost", "deploy the stack again"),
      ];
    }),
  ]);
  return [...ttl, ...backups];
}
