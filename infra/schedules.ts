import { Duration } from "aws-cdk-lib";
import { Rule, Schedule } from "aws-cdk-lib/aws-events";
import { LambdaFunction } from "aws-cdk-lib/aws-events-targets";
import { Construct } from "constructs";
import type { SluiceFunction } from "./functions.ts";

/** What runs every minute: the functions that nothing but time starts. */
export class Schedules extends Construct {
  constructor(scope: Construct, id: string, functions: readonly SluiceFunction[]) {
    super(scope, id);
    for (const { kind, function: started } of functions) {
      new Rule(this, kind, {
        description: `Starts ${kind} each minute`,
        schedule: Schedule.rate(Duration.minutes(1)),
        // A start that was missed is made up for by the next.
        targets: [new LambdaFunction(started, { retryAttempts: 0, maxEventAge: Duration.minutes(1) })],
      });
    }
  }
}
