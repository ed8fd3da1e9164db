import { App, Validations } from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";

/**
 * A CDK app whose synthesis fails on whatever CloudFormation would refuse and on each finding of cdk-nag's rules for
 * AWS solutions that is not acknowledged with a reason.
 *
 * @param outdir where the assembly goes; default: where the CDK command line says
 */
export function checkedApp(outdir?: string): App {
  const app = new App({
    ...(outdir !== undefined && { outdir }),
    analyticsReporting: false,
    treeMetadata: false,
    postCliContext: {
      "@aws-cdk/core:validateAgainstDefaultRules": true,
      "@aws-cdk/core:annotationsInValidationReport": true,
      "@aws-cdk/core:checkSecretUsage": true,
      "@aws-cdk/core:target-partitions": ["aws", "aws-cn"],
      "@aws-cdk/aws-iam:minimizePolicies": true,
      // CloudFormation itself gives the stack's tags to what it makes.
      "@aws-cdk/core:explicitStackTags": true,
    },
  });
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return app;
}
