import type { Resource } from "../deployed.ts";
import { AWS_CLIENT, type Place } from "../place.ts";
import { cleanLine } from "../text.ts";
import { examine, type Finding, isMissing, ok, ownFunctions, warning, wrong } from "./finding.ts";

const READ = "secretsmanager:GetSecretValue";
const PART = "roles and the secret";

/** Somebody that connects to NATS, and its role. */
interface Reader {
  readonly name: string;
  readonly role: string;
}

/**
 * Looks whether each function of a deployed stack, and its bridge, may read the secret by which they connect to NATS
 * (infra/grants.ts). Policies of the secret itself, or of its key, are not looked at.
 */
export async function checkReaders(
  { outputs }: Pick<Place, "outputs">,
  resources: readonly Resource[],
): Promise<readonly Finding[]> {
  const { NatsCredentials: credentials = "" } = outputs;
  if (!credentials.startsWith("secret:")) return [];
  return examine(PART, "allow lambda:GetFunction* and secretsmanager:DescribeSecret, to know", async () => {
    const secret = await arnOf(credentials.slice("secret:".length));
    // That it does not exist is told by its own line.
    if (secret === undefined) return [];
    const readers = [...(await functionReaders(resources)), ...(await serviceReaders(resources))];
    const found = await Promise.all(readers.map((reader) => readerFindings(reader, secret)));
    const amiss = found.flat();
    const fine = readers.length - amiss.length;
    return fine === 0 ? amiss : [...amiss, ok(PART, `${fine} of ${readers.length} may read it`)];
  });
}

async function arnOf(name: string): Promise<string | undefined> {
  const { DescribeSecretCommand, SecretsManagerClient } = await import("@aws-sdk/client-secrets-manager");
  const client = new SecretsManagerClient(AWS_CLIENT);
  try {
    return (await client.send(new DescribeSecretCommand({ SecretId: name }))).ARN;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  } finally {
    client.destroy();
  }
}

async function functionReaders(resources: readonly Resource[]): Promise<Reader[]> {
  const { GetFunctionConfigurationCommand, LambdaClient } = await import("@aws-sdk/client-lambda");
  const client = new LambdaClient(AWS_CLIENT);
  try {
    const readers = await Promise.all(
      ownFunctions(resources).map(async ({ name }): Promise<Reader[]> => {
        const asked = client.send(new GetFunctionConfigurationCommand({ FunctionName: name }));
        // One that does not exist is told by its own line.
        const { Role } = await asked.catch((error: unknown) => {
          if (isMissing(error)) return { Role: undefined };
          throw error;
        });
        return Role === undefined ? [] : [{ name, role: Role }];
      }),
    );
    return readers.flat();
  } finally {
    client.destroy();
  }
}

async function serviceReaders(resources: readonly Resource[]): Promise<Reader[]> {
  const definition = resources.find(({ type }) => type === "AWS::ECS::TaskDefinition")?.name;
  if (definition === undefined) return [];
  const { DescribeTaskDefinitionCommand, ECSClient } = await import("@aws-sdk/client-ecs");
  const client = new ECSClient(AWS_CLIENT);
  try {
    const command = new DescribeTaskDefinitionCommand({ taskDefinition: definition });
    const role = (await client.send(command)).taskDefinition?.taskRoleArn;
    return role === undefined ? [] : [{ name: "the bridge service", role }];
  } finally {
    client.destroy();
  }
}

/** What is amiss with a role; nothing when it may read the secret. */
async function readerFindings({ name, role }: Reader, secret: string): Promise<Finding[]> {
  const { IAMClient, SimulatePrincipalPolicyCommand } = await import("@aws-sdk/client-iam");
  const client = new IAMClient(AWS_CLIENT);
  const part = `role of ${name}`;
  try {
    const asked = { PolicySourceArn: role, ActionNames: [READ], ResourceArns: [secret] };
    const { EvaluationResults = [] } = await client.send(new SimulatePrincipalPolicyCommand(asked));
    const decision = EvaluationResults[0]?.EvalDecision;
    if (decision === "allowed") return [];
    return [
      wrong(
        part,
        `may not read the secret of NATS (${decision}): it cannot connect`,
        `deploy the stack again, or allow ${READ} on ${secret} to ${role}`,
      ),
    ];
  } catch (error) {
    const reason = error instanceof Error ? cleanLine(error.message, 300) : String(error);
    return [
      warning(
        part,
        `it could not be checked whether it may read the secret of NATS: ${reason}`,
        `allow iam:SimulatePrincipalPolicy on ${role}, to know`,
      ),
    ];
  } finally {
    client.destroy();
  }
}
