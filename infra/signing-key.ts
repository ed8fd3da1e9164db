import { RemovalPolicy, Validations } from "aws-cdk-lib";
import { CfnSecret } from "aws-cdk-lib/aws-secretsmanager";
import { Construct } from "constructs";

/**
 * The secret in which the deployment's signing key is kept. It is declared without a value, which CloudFormation leaves
 * empty (its reference, AWS::SecretsManager::Secret): whoever signs first makes the key.
 */
export class SigningKeySecret extends Construct {
  /** Its ARN. */
  readonly arn: string;

  /** @param props.keep whether it outlives the stack: peers know the deployment by this key */
  constructor(scope: Construct, id: string, { keep }: { readonly keep: boolean }) {
    super(scope, id);
    const secret = new CfnSecret(this, "Secret", { description: "The key by which Sluice signs its cards" });
    secret.applyRemovalPolicy(keep ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY);
    Validations.of(secret).acknowledge({
      id: "AwsSolutions-SMG4",
      reason:
        "Peers pin the key, so that an operator decides when it is rotated (sluice keys rotate); rotated by itself, nobody would know whether it was stolen.",
    });
    this.arn = secret.ref;
  }
}
