import type { S3Client } from "@aws-sdk/client-s3";
import { clientSettings, type Place } from "../place.ts";
import { examine, type Finding, isMissing, ok, warning, wrong } from "./finding.ts";

/** Where values lie, and artifacts wait to be copied (infra/storage.ts). */
const VALUES = "values/";
const DEPLOY = "deploy the stack again";

/** Looks at the bucket: that it is there, and ours; and in AWS that it is encrypted, closed, and emptied in time. */
export async function checkBucket(place: Place): Promise<readonly Finding[]> {
  const { HeadBucketCommand, S3Client } = await import("@aws-sdk/client-s3");
  const client = new S3Client({ ...clientSettings(place, "s3"), forcePathStyle: place.local !== undefined });
  const Bucket = place.outputs.BucketName;
  try {
    await client.send(new HeadBucketCommand({ Bucket }));
    // The local host's S3 has none of the rest.
    const kept = place.local === undefined ? await keptFindings(client, Bucket) : [];
    return [ok("bucket", `${Bucket} is there`), ...kept];
  } catch (error) {
    if (!isMissing(error)) throw error;
    return [wrong("bucket", `${Bucket} does not exist: large values are lost`, DEPLOY)];
  } finally {
    client.destroy();
  }
}

async function keptFindings(client: S3Client, Bucket: string): Promise<readonly Finding[]> {
  const { GetBucketEncryptionCommand, GetBucketLifecycleConfigurationCommand, GetPublicAccessBlockCommand } =
    await import("@aws-sdk/client-s3");
  const allow = (action: string) => `allow s3:${action} on the bucket, to know`;
  const found = await Promise.all([
    examine("bucket's encryption", allow("GetEncryptionConfiguration"), async () => {
      const asked = client.send(new GetBucketEncryptionCommand({ Bucket }));
      const { ServerSideEncryptionConfiguration: of } = await unlessNone(asked);
      const algorithm = of?.Rules?.[0]?.ApplyServerSideEncryptionByDefault?.SSEAlgorithm;
      if (algorithm !== undefined) return [ok("bucket's encryption", algorithm)];
      return [wrong("bucket's encryption", "there is none", DEPLOY)];
    }),
    examine("bucket's public access", allow("GetBucketPublicAccessBlock"), async () => {
      const asked = client.send(new GetPublicAccessBlockCommand({ Bucket }));
      const { PublicAccessBlockConfiguration: block = {} } = await unlessNone(asked);
      const { BlockPublicAcls, BlockPublicPolicy, IgnorePublicAcls, RestrictPublicBuckets } = block;
      const settings = { BlockPublicAcls, BlockPublicPolicy, IgnorePublicAcls, RestrictPublicBuckets };
      const open = Object.entries(settings).flatMap(([name, on]) => (on === true ? [] : [name]));
      if (open.length === 0) return [ok("bucket's public access", "is blocked")];
      return [wrong("bucket's public access", `is not blocked by ${open.join(", ")}`, DEPLOY)];
    }),
    examine("bucket's lifecycle", allow("GetLifecycleConfiguration"), async () => {
      const asked = client.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
      const { Rules = [] } = await unlessNone(asked);
      const days = Rules.find(({ Status, Filter }) => Status === "Enabled" && Filter?.Prefix === VALUES)
        ?.Expiration?.Days;
      if (days !== undefined) return [ok("bucket's lifecycle", `values go after ${days} days`)];
      return [warning("bucket's lifecycle", "no rule expires values: they are kept for ever", DEPLOY)];
    }),
  ]);
  return found.flat();
}

/** What a bucket does not have is an error, by these names (Amazon S3 API Reference, List of error codes). */
const NONE = [
  "ServerSideEncryptionConfigurationNotFoundError",
  "NoSuchPublicAccessBlockConfiguration",
  "NoSuchLifecycleConfiguration",
];

async function unlessNone<T extends object>(asked: Promise<T>): Promise<Partial<T>> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Error && NONE.includes(error.name)) return {};
    throw error;
  }
}
