import { Duration } from "aws-cdk-lib";
import { Rule, Schedule } from "aws-cdk-lib/aws-events";
import { LambdaFunction } from "aws-cdk-lib/aws-events-targets";
import { Construct } from "constructs";
import type { SluiceFunction } from "./functions.ts";

/** The functions that nothing but time starts. */
export interface Scheduled {
  readonly bridge: SluiceFunction;
  readonly sweep: SluiceFunction;
}

/** What runs every minute. */
export class Schedules extends Construct {
  constructor(scope: Construct, id: string, functions: Scheduled) {
    super(scope, id);
    for (const name of ["bridge", "sweep"] as const) {
      new Rule(this, name, {
        description: `Starts ${name} each minute`,
        schedule: Schedule.rate(Duration.minutes(1)),
        // A start that was missed is made up for by the next.
        targets: [
          new LambdaFunction(functions[name].function, {
            retryAttempts: 0,
            maxEventAge: Duration.minutes(1),
          }),
        ],
      });
    }
  }
}
