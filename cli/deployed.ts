import { CliError, EXIT } from "./errors.ts";
import { AWS_CLIENT, reach } from "./place.ts";

/** A resource of a deployed stack. */
export interface Resource {
  /** Its logical id in the template. */
  readonly id: string;
  /** Such as `AWS::Lambda::Function`. */
  readonly type: string;
  /** Its physical id: what the service that owns it calls it. */
  readonly name: string;
}

/** CloudFormation's bound of a stack's resources is 500, of a page 100 (CloudFormation quotas, ListStackResources). */
const MAX_PAGES = 20;

/**
 * The resources of a deployed stack.
 *
 * @throws CliError `unreachable` when CloudFormation does not answer, or refuses
 */
export async function resourcesOf(stack: string): Promise<Resource[]> {
  const { CloudFormationClient, ListStackResourcesCommand } = await import("@aws-sdk/client-cloudformation");
  const client = new CloudFormationClient(AWS_CLIENT);
  const resources: Resource[] = [];
  try {
    let NextToken: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const command = new ListStackResourcesCommand({ StackName: stack, ...(NextToken && { NextToken }) });
      const answer = await reach(`the stack ${stack}`, client.send(command));
      for (const { LogicalResourceId, ResourceType, PhysicalResourceId } of answer.StackResourceSummaries ??
        [])
        if (LogicalResourceId !== undefined && ResourceType !== undefined && PhysicalResourceId !== undefined)
          resources.push({ id: LogicalResourceId, type: ResourceType, name: PhysicalResourceId });
      NextToken = answer.NextToken;
      if (NextToken === undefined) return resources;
    }
  } finally {
    client.destroy();
  }
  throw new CliError(EXIT.failed, `the stack ${stack} has more resources than CloudFormation allows`);
}
