import type { AgentSource } from "../../shared/agents/define.ts";
import type { Agent, Skill, Task } from "../../shared/agents/index.ts";
import type { DeploymentConfig } from "../../shared/config/deployment.ts";
import type { AgentPolicy } from "../../shared/config/policy.ts";
import { readInput } from "../../shared/steps/input.ts";
import type { Head } from "../../shared/tasks/items.ts";
import type { Store } from "../../shared/tasks/store.ts";
import type { Values } from "../../shared/tasks/values.ts";
import { type ErrorCode, readMessage, readTaskPayload } from "../../shared/wire/index.ts";

/** A task ready to be run, or why it cannot be. */
export type TaskReading =
  | { readonly ok: true; readonly skill: Skill; readonly policy: AgentPolicy; readonly task: Task }
  | { readonly ok: false; readonly code: ErrorCode; readonly message: string };

/** The payload's text, from wherever admission put it. */
async function payloadText(store: Store, values: Values, head: Head): Promise<string> {
  const { input } = head;
  if (input !== undefined && "item" in input) {
    const text = await store.input(head.taskId, head.digest);
    if (text !== undefined) return text;
  } else if (input !== undefined) return values.text(input);
  throw new Error(`the payload of task ${head.taskId} is no longer stored`);
}

/** The agent's settings: synthesis has seen them fit, but a schema may look at more than the text. */
async function readSettings(agent: Agent, settings: unknown) {
  try {
    return { ok: true as const, value: await agent.settings.parseAsync(settings ?? {}) };
  } catch (error) {
    const why = error instanceof Error ? error.message : "its schema threw";
    return { ok: false as const, reason: `the settings of agent ${agent.id} do not fit: ${why}` };
  }
}

/**
 * Finds the skill that a task is for and reads its input.
 *
 * @returns `invalid_envelope` naming the field when the message does not fit the skill's schema
 */
export async function readTask(
  { store, values }: { store: Store; values: Values },
  {
    deployment,
    policy,
    agents,
    head,
  }: {
    deployment: DeploymentConfig;
    policy: AgentPolicy | undefined;
    agents: readonly AgentSource[];
    head: Head;
  },
): Promise<TaskReading> {
  const hosted = deployment.agents.find(({ runtime }) => runtime === head.to);
  const agent = await agents.find(({ id }) => id === hosted?.id)?.load(head);
  const skill = agent?.skills[head.skill ?? ""];
  if (hosted === undefined || policy === undefined || agent === undefined || skill === undefined)
    return { ok: false, code: "internal", message: `${head.to} no longer has the skill ${head.skill}` };

  const payload = readTaskPayload(JSON.parse(await payloadText(store, values, head)));
  if (!payload.ok) return { ok: false, code: "invalid_envelope", message: payload.reason };
  const message = readMessage(payload.value.a2a);
  const input = await readInput(skill.input, message);
  if (!input.ok) {
    const field = input.field === "" ? "input" : `input.${input.field}`;
    return { ok: false, code: "invalid_envelope", message: `invalid_envelope: ${field}: ${input.problem}` };
  }
  const settings = await readSettings(agent, hosted.settings);
  if (!settings.ok) return { ok: false, code: "internal", message: settings.reason };

  const { taskId, from, to, deadline, clientTaskRef } = head;
  const { contextId } = payload.value;
  const task = {
    id: taskId,
    from,
    to,
    skill: head.skill ?? "",
    input: input.value,
    message,
    settings: settings.value,
    memoryWrite: policy.allowMemoryWrite,
    deadline,
    ...(contextId === undefined ? {} : { contextId }),
    ...(clientTaskRef === undefined ? {} : { clientTaskRef }),
  };
  return { ok: true, skill, policy, task };
}
