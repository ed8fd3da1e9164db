import { isUtf8 } from "node:buffer";
import { writeFile } from "node:fs/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { Command } from "commander";
import * as z from "zod";
import { natsMessenger } from "../shared/events/messenger.ts";
import { ARTIFACTS_BUCKET } from "../shared/nats/index.ts";
import { refusalOf } from "../shared/nats/refusal.ts";
import type { ArtifactRef } from "../shared/wire/index.ts";
import { isErased } from "./erased.ts";
import { CliError, EXIT } from "./errors.ts";
import { readEventsOfTask } from "./events.ts";
import { foldTasks } from "./fold.ts";
import { common, runtime, taskKey, withCommon } from "./options.ts";
import { resolveTask } from "./resolve.ts";
import { inSession } from "./session.ts";
import { clean, cleanLine, sizeText } from "./text.ts";

const options = common.extend({ from: z.string().optional(), out: z.string().optional() });
type Options = z.infer<typeof options>;

export function artifactCommand(): Command {
  return withCommon(new Command("artifact"))
    .description("read an artifact that a task has given out")
    .argument("<task>", "a task's id", taskKey)
    .argument("[name]", "the artifact's name or id, where there are several")
    .option("--out <path>", "write it into a file (default: stdout)")
    .option("--from <runtime>", "whose task (default: anybody's)", runtime)
    .action(async (task: string, name: string | undefined, given: unknown) => {
      process.exitCode = await artifact(task, name, options.parse(given));
    });
}

async function artifact(id: string, name: string | undefined, given: Options): Promise<number> {
  return inSession(given, async ({ nc, out }) => {
    const task = await resolveTask(nc, id);
    const views = foldTasks(await readEventsOfTask(nc, task, given.from));
    if (views.length === 0) throw new CliError(EXIT.failed, `task ${task}: no event tells of it`);
    const ref = choose(
      task,
      views.flatMap(({ artifacts }) => artifacts),
      name,
    );
    if (given.out !== undefined) {
      await save(given.out, await fetch(nc, ref));
      out.line(`${cleanLine(given.out)}: ${sizeText(ref.sizeBytes)}`);
    } else if (!given.json) show(ref, await fetch(nc, ref));
    out.record(ref);
    return EXIT.ok;
  });
}

/** @throws CliError `failed` when there is no artifact of that name, or more than one that could be meant */
function choose(task: string, artifacts: readonly ArtifactRef[], name: string | undefined): ArtifactRef {
  const byId = artifacts.filter(({ id }) => id === name);
  const meant = byId.length > 0 ? byId : artifacts.filter((ref) => name === undefined || ref.name === name);
  const [ref] = meant;
  if (ref !== undefined && meant.length === 1) return ref;
  const listed = (meant.length > 1 ? meant : artifacts).map(({ id, name }) => `${cleanLine(name)} (${id})`);
  const known = listed.length === 0 ? "it has none" : `it has ${listed.join(", ")}`;
  const what = name === undefined ? "no artifact" : `no artifact ${JSON.stringify(cleanLine(name))}`;
  const wrong = meant.length > 1 ? "several artifacts may be meant, name one by its id" : what;
  throw new CliError(EXIT.failed, `task ${task}: ${wrong}; ${known}`);
}

async function fetch(nc: NatsConnection, ref: ArtifactRef): Promise<Uint8Array> {
  try {
    return await natsMessenger({ connection: async () => nc }).fetch(ref);
  } catch (cause) {
    if (refusalOf(cause) !== undefined) throw cause;
    if (await isErased(nc, ref))
      throw new CliError(
        EXIT.failed,
        `artifact ${JSON.stringify(cleanLine(ref.name))}: it was erased; ${ARTIFACTS_BUCKET} keeps a note that it was there`,
        { cause },
      );
    throw new CliError(EXIT.failed, cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

async function save(path: string, bytes: Uint8Array): Promise<void> {
  try {
    await writeFile(path, bytes);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(EXIT.usage, `--out ${path}: cannot be written: ${reason}`, { cause });
  }
}

/** Bytes as they are into a pipe; on a terminal a text without what could rewrite the screen. */
function show({ name, mediaType }: ArtifactRef, bytes: Uint8Array): void {
  const { stdout } = process;
  if (stdout.isTTY !== true) return void stdout.write(bytes);
  if (!isUtf8(bytes) || bytes.includes(0))
    throw new CliError(
      EXIT.usage,
      `artifact ${JSON.stringify(cleanLine(name))} is no text (${cleanLine(mediaType)}): add --out FILE, or a pipe`,
    );
  stdout.write(`${clean(new TextDecoder().decode(bytes)).trimEnd()}\n`);
}
