import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import { ensureStreams } from "../../shared/nats/index.ts";
import { start } from "../cli/run.ts";
import { SENDER, type Sluice, startSluice } from "../support/sluice.ts";
import { strictly } from "../support/strict.ts";
import { until } from "../support/until.ts";

let sluice: Sluice;
before(async () => {
  sluice = await startSluice();
  await ensureStreams(await jetstreamManager(sluice.peer.nc));
});
after(() => sluice.stop());

const command = (...args: string[]) => start([...args, "--nats", sluice.nats.url]);

/** Gives `asker` a task, and waits until it asks. */
async function asked() {
  const task = await sluice.peer.ask("acme-asker", { a2a: "wall", channelRef: "asker" });
  await told(task, "INPUT_REQUIRED Which colour for the wall?");
  return task;
}

type Task = Awaited<ReturnType<typeof asked>>;

/** Waits until an event says something; gives all of them. */
const told = (task: Task, what: string) =>
  until(what, async () => {
    const events = await strictly(sluice.peer, task);
    return events.some((event) => event.includes(what)) && events;
  });

test("people answer a task by the command, whoever has asked it, and it goes on each time", async () => {
  const task = await asked();
  const { taskId } = task;
  const vague = await command("reply", taskId, "mauve").finished;
  assert.equal(vague.code, 1, "it is asked again");
  await told(task, "4 status INPUT_REQUIRED");
  const status = await command("status", taskId).finished;
  assert.match(status.stdout, new RegExp(`${SENDER} must answer: ./sluice reply ${taskId} TEXT`));

  const blue = await command("reply", taskId, "blue").finished;
  assert.match(blue.stdout, /^sent {7}input_reply to acme-asker\nworking {4}input received\n/);
  assert.equal(blue.code, 0, blue.stderr);
  await told(task, "AUTH_REQUIRED Paint the wall blue?");
  assert.equal((await command("reply", taskId, "yes").finished).code, 1);
  assert.equal((await command("authorize", taskId).finished).code, 0);
  const events = await told(task, "result");
  assert.match(events[3] ?? "", /^4 status INPUT_REQUIRED .*\n\nWhich colour for the wall\?$/);
  assert.deepEqual(events.toSpliced(3, 1), [
    "1 accepted WORKING",
    "2 status INPUT_REQUIRED Which colour for the wall?",
    "3 status WORKING input received",
    "5 status WORKING input received",
    "6 status AUTH_REQUIRED Paint the wall blue?",
    "7 status WORKING authorization received",
    "8 result COMPLETED the wall is blue",
  ]);
});

test("a denial ends it, and so does a cancel while it waits", async () => {
  const denied = await asked();
  await command("reply", denied.taskId, "red").finished;
  await told(denied, "AUTH_REQUIRED");
  const no = await command("authorize", denied.taskId, "--deny", "too red").finished;
  assert.equal(no.code, 0, no.stderr);
  assert.match(no.stdout, /^failed {5}auth_not_satisfied: too red$/m);

  const canceled = await asked();
  assert.equal((await command("cancel", canceled.taskId).finished).code, 0);
  assert.deepEqual(await strictly(sluice.peer, canceled), [
    "1 accepted WORKING",
    "2 status INPUT_REQUIRED Which colour for the wall?",
    "3 status CANCELED canceled: cancel requested",
  ]);
});

test("a question and an answer may be large, and what was asked is told again", async () => {
  const wall = "w".repeat(40_000);
  const task = await sluice.peer.ask("acme-asker", { a2a: wall, channelRef: "asker" });
  await told(task, "2 status INPUT_REQUIRED");
  await sluice.peer.control("acme-asker", task.taskId, "status", 3);
  const [, asked, again] = await told(task, "3 status INPUT_REQUIRED");
  assert.ok(asked?.endsWith(`Which colour for the ${wall}?`));
  assert.equal(again?.slice(1), asked?.slice(1));
  assert.equal((await command("reply", task.taskId, "m".repeat(40_000)).finished).code, 1);
  await told(task, "5 status INPUT_REQUIRED");
});

test("a question outlives the host", async () => {
  const task = await asked();
  await sluice.stopHost();
  await sluice.startHost();
  assert.equal((await command("reply", task.taskId, "green").finished).code, 0);
  await told(task, "4 status AUTH_REQUIRED Paint the wall green?");
});
