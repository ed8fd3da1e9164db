import { Duration } from "aws-cdk-lib";
import { Rule, Schedule } from "aws-cdk-lib/aws-events";
import { LambdaFunction } from "aws-cdk-lib/aws-events-targets";
import { Construct } from "constructs";
import type { Functions } from "./functions.ts";

/** What runs every minute. */
export class Schedules extends Construct {
  constructor(scope: Construct, id: string, functions: Functions) {
    super(scope, id);
    for (const name of ["bridge", "sweep"] as const) {
      new Rule(this, name, {
        description: `Starts ${name} each minute`,
        schedule: Schedule.rate(Duration.minutes(1)),
        // A start that was missed is made up for by the next.
        targets: [
          new LambdaFunction(functions.all[name], { retryAttempts: 0, maxEventAge: Duration.minutes(1) }),
        ],
      });
    }
  }
}
