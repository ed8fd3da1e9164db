import * as z from "zod";
import { failureOf } from "../shared/steps/kinds/delegate-outcome.ts";
import { outcome } from "../shared/tasks/delegation.ts";
import type { Child, StoredStep } from "../shared/tasks/items.ts";
import type { TaskRecord } from "./record.ts";

/** How a step that has waited came out, where nothing but the word it waited for is written down. */
export interface StepOutcome {
  readonly at: number;
  readonly error?: NonNullable<StoredStep["error"]>;
}

const approval = z.object({ approve: z.boolean(), denyReason: z.string().optional() });

/** What has come for the steps that are still open in the journal: answers, and the ends of delegated tasks. */
export async function outcomesOf(record: TaskRecord): Promise<Map<string, StepOutcome>> {
  const { view, text } = record;
  const outcomes = new Map<string, StepOutcome>();
  for (const [name, { at, value }] of view.answers) {
    const asked = view.open.get(name)?.kind;
    outcomes.set(name, { at, ...(asked === "approve" && denial(await text(value))) });
  }
  for (const [name, told] of view.heard) {
    const child = view.open.get(name)?.child;
    if (child === undefined || told.outcome === undefined) continue;
    outcomes.set(name, { at: told.at, ...childFailure(name, child, await text(told.outcome)) });
  }
  return outcomes;
}

function denial(text = "null"): Pick<StepOutcome, "error"> {
  const answer = approval.safeParse(JSON.parse(text)).data;
  if (answer?.approve !== false) return {};
  return { error: { name: "ApprovalDenied", message: answer.denyReason || "approval was denied" } };
}

function childFailure(step: string, child: Child, text = "null"): Pick<StepOutcome, "error"> {
  const ended = outcome().safeParse(JSON.parse(text)).data;
  const failure = ended && failureOf(step, child, ended);
  if (failure === undefined) return {};
  const { name, code, message } = failure;
  return { error: { name, code, message } };
}
