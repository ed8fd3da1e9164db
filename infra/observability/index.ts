import { Stack } from "aws-cdk-lib";
import { Alarm, ComparisonOperator, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import type { ILogGroup } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import type { CloudConfig } from "../../shared/config/cloud.ts";
import type { SluiceFunction } from "../functions.ts";
import type { Parts } from "../parts.ts";
import { type AlarmSpec, alarmSpecs } from "./alarms.ts";
import { dashboard } from "./dashboard.ts";
import { OwnMetrics } from "./metrics.ts";
import { saveQueries } from "./queries.ts";
import { alarmTopic } from "./topic.ts";

export interface ObservabilityProps {
  readonly parts: Parts;
  readonly functions: readonly SluiceFunction[];
  /** Of the functions, and of the bridge where it is a service. */
  readonly logGroups: readonly ILogGroup[];
  readonly alarms: CloudConfig["alarms"];
}

/**
 * How a stack is seen: alarms that go to a topic, each with its runbook; a dashboard; queries over the logs.
 *
 * Plain CloudWatch constructs, not `cdk-monitoring-constructs`: it watches resource by resource, by names of its own,
 * while here a table of alarms (alarms.ts) is what docs, tests and the local host have in common; half of what it knows
 * are metrics of our own.
 */
export class Observability extends Construct {
  readonly alarms: readonly Alarm[];

  constructor(scope: Construct, id: string, props: ObservabilityProps) {
    super(scope, id);
    const own = new OwnMetrics(this);
    const action = new SnsAction(alarmTopic(this, "Topic", props.alarms));
    this.alarms = alarmSpecs(own, props).map((spec) => {
      const alarm = this.#alarm(spec);
      alarm.addAlarmAction(action);
      alarm.addOkAction(action);
      return alarm;
    });
    dashboard(this, "Dashboard", { ...props, own, alarms: this.alarms });
    saveQueries(this, props.logGroups);
  }

  #alarm({ id, runbook, says, metric, threshold, datapoints, comparison, missing }: AlarmSpec): Alarm {
    const [datapointsToAlarm, evaluationPeriods] = datapoints;
    return new Alarm(this, id, {
      alarmName: `${Stack.of(this).stackName}-${id}`,
      alarmDescription: `${says} Runbook: docs/runbooks/${runbook}.md`,
      metric,
      threshold,
      comparisonOperator: comparison ?? ComparisonOperator.GREATER_THAN_THRESHOLD,
      datapointsToAlarm,
      evaluationPeriods,
      treatMissingData: missing ?? TreatMissingData.NOT_BREACHING,
    });
  }
}
