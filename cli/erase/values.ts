import { DeleteObjectCommand, ListObjectsV2Command, type S3Client } from "@aws-sdk/client-s3";

/** Objects that are deleted at once. */
const AT_ONCE = 8;

/**
 * Deletes all values of a task.
 *
 * @returns how many there were
 */
export async function deleteValues(client: S3Client, bucket: string, taskId: string): Promise<number> {
  let deleted = 0;
  let ContinuationToken: string | undefined;
  do {
    const page = await client.send(
      new ListObjectsV2Command({
        Bucket: bucket,
        Prefix: `values/${taskId}/`,
        ...(ContinuationToken && { ContinuationToken }),
      }),
    );
    const keys = (page.Contents ?? []).flatMap(({ Key }) => (Key === undefined ? [] : [Key]));
    const left = keys.values();
    const work = async () => {
      for (const Key of left) await client.send(new DeleteObjectCommand({ Bucket: bucket, Key }));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    deleted += keys.length;
    ContinuationToken = page.NextContinuationToken;
  } while (ContinuationToken !== undefined);
  return deleted;
}
