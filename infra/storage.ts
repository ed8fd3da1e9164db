import { Duration, RemovalPolicy, Stack, Validations } from "aws-cdk-lib";
import { AttributeType, BillingMode, ProjectionType, Table, TableEncryption } from "aws-cdk-lib/aws-dynamodb";
import { BlockPublicAccess, Bucket, BucketEncryption, CfnBucket } from "aws-cdk-lib/aws-s3";
import { Construct } from "constructs";

/** The index that `sweep` reads: only heads that still need attention carry its keys. */
export const DUE_INDEX = "due";
/** Where values lie that items are too small for. */
export const VALUES_PREFIX = "values/";

export interface StorageProps {
  /** Days after which a value is expired: longer than any task can need it. */
  readonly valuesExpireDays: number;
  /** Whether both outlive the stack. */
  readonly keep: boolean;
}

/**
 * The table of tasks and the bucket of large values. What is not kept goes with the stack; a bucket only if it is
 * empty, for CloudFormation deletes no other.
 */
export class Storage extends Construct {
  readonly table: Table;
  readonly bucket: Bucket;

  constructor(scope: Construct, id: string, props: StorageProps) {
    super(scope, id);
    const removalPolicy = props.keep ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY;
    this.table = new Table(this, "Table", {
      partitionKey: { name: "pk", type: AttributeType.STRING },
      sortKey: { name: "sk", type: AttributeType.STRING },
      billingMode: BillingMode.PAY_PER_REQUEST,
      timeToLiveAttribute: "expiresAt",
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
      encryption: TableEncryption.AWS_MANAGED,
      deletionProtection: props.keep,
      removalPolicy,
    });
    this.table.addGlobalSecondaryIndex({
      indexName: DUE_INDEX,
      partitionKey: { name: "dueShard", type: AttributeType.STRING },
      sortKey: { name: "dueAt", type: AttributeType.NUMBER },
      projectionType: ProjectionType.KEYS_ONLY,
    });
    this.bucket = new Bucket(this, "Bucket", {
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      encryption: BucketEncryption.S3_MANAGED,
      enforceSSL: true,
      removalPolicy,
      lifecycleRules: [
        { id: "values", prefix: VALUES_PREFIX, expiration: Duration.days(props.valuesExpireDays) },
        { id: "incomplete-uploads", abortIncompleteMultipartUploadAfter: Duration.days(1) },
      ],
    });
    Validations.of(this.bucket).acknowledge({
      id: "AwsSolutions-S1",
      reason:
        "Only the stack's own functions may touch the bucket; a second bucket of access logs would cost more than it tells. CloudTrail data events can be switched on for it.",
    });
  }

  /** The name of the bucket in the template, by which cdk-nag speaks of it. */
  get bucketLogicalId(): string {
    const { defaultChild } = this.bucket.node;
    if (!(defaultChild instanceof CfnBucket)) throw new TypeError("a bucket without a resource");
    return Stack.of(this).getLogicalId(defaultChild);
  }
}
