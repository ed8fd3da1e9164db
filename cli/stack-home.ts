import { credentials } from "../shared/config/deployment.ts";
import { readServerUrls } from "../shared/config/server-urls.ts";
import { CliError, EXIT } from "./errors.ts";
import type { Home, Where } from "./home.ts";
import type { Place } from "./place.ts";

/**
 * The deployment that a verb acts on, beside its stack. Of a stack in AWS NATS is where the stack's functions find it
 * (its outputs), whatever host runs in this folder and whatever `agents.yaml` names by now; an older stack does not
 * tell, and then it is where `agents.yaml` says.
 *
 * @throws CliError `usage` when this folder is of another deployment than the stack; `failed` when an output is not as
 *   expected
 */
export function stackHome({ host, ...home }: Home, { deployed, outputs }: Place): Home {
  if (deployed === undefined) return { ...home, ...(host !== undefined && { host }) };
  const { DeploymentName: name = home.deployment } = outputs;
  if (name === home.deployment) return { ...home, operator: natsOf(home, deployed.name, outputs) };
  throw new CliError(
    EXIT.usage,
    `--stack ${deployed.name}: it is of the deployment ${name}, but ${home.config} is of ${home.deployment}: call the command in the folder whose agents.yaml says deployment: ${name}`,
  );
}

function natsOf(
  { operator }: Home,
  stack: string,
  { NatsServers, NatsCredentials }: Place["outputs"],
): Where {
  if (NatsServers === undefined || NatsCredentials === undefined) return operator;
  const wrong = (output: string, why: string) =>
    new CliError(EXIT.failed, `--stack ${stack}: its output ${output}: ${why}`);
  const read = readServerUrls(NatsServers);
  if ("wrong" in read) throw wrong("NatsServers", read.wrong);
  const login = credentials.safeParse(NatsCredentials);
  if (!login.success) throw wrong("NatsCredentials", "expected none, file:PATH or secret:NAME");
  return { ...operator, servers: read.urls, credentials: login.data };
}
