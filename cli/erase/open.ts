import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { S3Client } from "@aws-sdk/client-s3";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import type { NatsConnection } from "@nats-io/transport-node";
import { dynamoEraser } from "../../shared/tasks/erasing.ts";
import { isTerminal } from "../../shared/wire/index.ts";
import { CliError, EXIT } from "../errors.ts";
import type { Home } from "../home.ts";
import { findNats, type NatsOptions, openNats } from "../nats.ts";
import { clientSettings, findPlace, reach } from "../place.ts";
import { readRecord, type TaskRecord } from "../record.ts";
import { openPlace } from "../stack.ts";
import { stackHome } from "../stack-home.ts";
import { eraseTable } from "./journal.ts";
import { deleteObjects, purgeMessages } from "./nats.ts";
import { deleteValues } from "./values.ts";

/** What was erased. */
export interface Erased {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly by: string;
  /** Objects of the bucket. */
  readonly values: number;
  /** Objects of the artifacts' object store. */
  readonly objects: number;
  /** Messages of the streams. */
  readonly messages: number;
}

/** A deployment whose tasks can be erased. */
export interface Erasing extends AsyncDisposable {
  /** @throws CliError `failed` when the task is unknown, or not over */
  find(task: string): Promise<TaskRecord>;
  /**
   * Erases a task. Whoever is killed at it does it again: what it still needs to know is deleted last.
   *
   * @throws CliError `unreachable` when NATS is needed and cannot be reached: nothing is erased then
   */
  erase(record: TaskRecord, of: { readonly by: string; readonly streams: boolean }): Promise<Erased>;
}

/** @throws CliError as {@link findPlace} and {@link stackHome} */
export async function openErasing(folder: Home, given: NatsOptions): Promise<Erasing> {
  const place = await findPlace(folder, given.stack);
  const home = stackHome(folder, place);
  const { label, local, outputs } = place;
  const closing = new AsyncDisposableStack();
  const stack = closing.use(openPlace(place));
  const dynamodb = new DynamoDBClient(clientSettings(place, "dynamodb"));
  const s3 = new S3Client({ ...clientSettings(place, "s3"), forcePathStyle: local !== undefined });
  closing.defer(() => dynamodb.destroy());
  closing.defer(() => s3.destroy());
  const eraser = dynamoEraser({ client: DynamoDBDocumentClient.from(dynamodb), table: outputs.TableName });

  /** Only what was given out by way of NATS needs it. */
  async function connect(isNeeded: boolean): Promise<NatsConnection | undefined> {
    if (!isNeeded) return undefined;
    const nc = await openNats(findNats(given, process.env, home), home.deployment, "erase");
    closing.defer(() => nc.close());
    return nc;
  }

  return {
    async find(task) {
      const record = await readRecord(stack, task);
      const { head, view } = record;
      if (isTerminal(head.state)) return record;
      throw new CliError(
        EXIT.failed,
        view.end === undefined
          ? `task ${task}: it is not over; ./sluice cancel ${task} ends it`
          : `task ${task}: its end is not published yet; try again in a minute`,
      );
    },

    async erase(record, { by, streams }) {
      const { head, entries } = record;
      const keys = entries.flatMap(({ events = [] }) =>
        events.flatMap(({ artifact }) => (artifact === undefined ? [] : [artifact.key])),
      );
      const nc = await connect(streams || keys.length > 0);
      // The journal names the objects, so it goes after them; what is left of its end needs no value of the bucket, so
      // that a repeated message is answered at any time; and the head, which says that all is done, comes last.
      const objects = nc === undefined ? 0 : await deleteObjects(nc, keys);
      const messages = nc === undefined || !streams ? 0 : await purgeMessages(nc, head);
      await reach(label, eraseTable(eraser, record));
      const values = await reach(label, deleteValues(s3, outputs.BucketName, head.taskId));
      const erased = head.erased ?? { at: Date.now(), by };
      if (!(await reach(label, eraser.markErased(head, erased))))
        throw new CliError(EXIT.failed, `task ${head.taskId}: its record has expired meanwhile`);
      return { ...erased, values, objects, messages };
    },

    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}
