import assert from "node:assert/strict";
import { defineAgent, type Step, skill } from "sluice";
import { startTask, type TaskOutcome, type TestTask } from "sluice/testing";
import * as z from "zod";

/** A version of the one agent of this file. */
export const version = (
  handle: (step: Step, settings: { place: string }) => unknown,
  { input = z.string(), slug = "task" }: { input?: z.ZodType; slug?: string } = {},
) => {
  const settings = z.strictObject({ place: z.string().default("here") });
  const run = async (task: { settings: { place: string } }, step: Step) =>
    String(await handle(step, task.settings));
  return defineAgent({
    id: "changed",
    description: "Changes",
    settings,
    skills: { [slug]: skill({ name: "Task", description: "", settings, input, run }) },
  });
};

/** What the version that is replaced waits in. */
export const wait = (step: Step) => step.sleep("wait", "10d");
/** Begins a task with one version, and goes on with another once it waits. */
export async function change(
  from: Parameters<typeof version>[0],
  to: Parameters<typeof version>[0],
): Promise<{ t: TestTask; outcome: TaskOutcome }> {
  const t = await startTask(version(from));
  await t.untilWaiting();
  t.deploy(version(to));
  return { t, outcome: await t.outcome() };
}
export const names = (t: TestTask) =>
  t.steps
    .filter(({ kind }) => kind === "run")
    .map(({ name }) => name)
    .sort();
export const completed = ({ state, text, error }: TaskOutcome) => {
  assert.equal(state, "TASK_STATE_COMPLETED", error?.message);
  return text;
};
export const failed = ({ state, error }: TaskOutcome) => {
  assert.equal(state, "TASK_STATE_FAILED");
  return `${error?.code} ${error?.message}`;
};
