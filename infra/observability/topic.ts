import { Stack, Validations } from "aws-cdk-lib";
import { ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { type ITopic, Topic } from "aws-cdk-lib/aws-sns";
import { EmailSubscription } from "aws-cdk-lib/aws-sns-subscriptions";
import type { Construct } from "constructs";
import type { CloudConfig } from "../../shared/config/cloud.ts";

/** Where alarms go: to a topic of the stack's own that nobody else may publish to, or to the operator's. */
export function alarmTopic(
  scope: Construct,
  id: string,
  { emails, topicArn }: CloudConfig["alarms"],
): ITopic {
  if (topicArn !== undefined) return Topic.fromTopicArn(scope, id, topicArn);
  const topic = new Topic(scope, id, { enforceSSL: true });
  // A policy of its own takes the place of the one that lets the account's alarms in.
  const { account } = Stack.of(scope);
  topic.grantPublish(
    new ServicePrincipal("cloudwatch.amazonaws.com", {
      conditions: { StringEquals: { "aws:SourceAccount": account } },
    }),
  );
  Validations.of(topic).acknowledge({
    id: "AwsSolutions-SNS2",
    reason:
      "An alarm says names and numbers. CloudWatch cannot use SNS's own key, and a key of one's own costs more than all that is sent.",
  });
  for (const email of emails) topic.addSubscription(new EmailSubscription(email));
  return topic;
}
