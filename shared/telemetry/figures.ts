import type { LogFields } from "./fields.ts";
import type { Telemetry } from "./index.ts";

/** From here on an agent is sure of what it has done. */
const SURE = 0.8;
/** More than any task costs or does: what is beyond is no figure. */
const MAX_FIGURE = 1_000_000_000_000;

/**
 * Counts what a task's result says of its cost and its course, by the names of docs/hitl.md: once, where its end was put.
 * They are the agent's own word, whether it is a handler of ours or a remote agent.
 *
 * @param metrics of the result
 * @param failed whether the task has failed
 * @returns the same for the line that says that the task has ended
 */
export function tellFigures(
  telemetry: Pick<Telemetry, "count" | "measure">,
  runtime: string,
  metrics: Readonly<Record<string, number>>,
  failed: boolean,
): LogFields {
  const figure = (name: string) => {
    const value = metrics[name];
    return typeof value === "number" && value >= 0 && value <= MAX_FIGURE ? value : undefined;
  };
  const costUsd = figure("cost_usd");
  const [input, output] = [figure("input_tokens"), figure("output_tokens")];
  const tokens = input === undefined && output === undefined ? undefined : (input ?? 0) + (output ?? 0);
  const toolCalls = figure("tool_calls");
  const worldstateDeltas = figure("worldstate_deltas");
  const given = figure("confidence");
  const confidence = given !== undefined && given <= 1 ? given : undefined;
  if (costUsd !== undefined) telemetry.count("TaskCostUsd", costUsd, { runtime });
  if (tokens !== undefined) telemetry.count("TokensUsed", tokens, { runtime });
  if (toolCalls !== undefined) telemetry.count("ToolCalls", toolCalls, { runtime });
  if (worldstateDeltas !== undefined) telemetry.count("WorldstateDeltas", worldstateDeltas, { runtime });
  if (confidence !== undefined) telemetry.measure("Confidence", confidence, { runtime });
  if (failed && confidence !== undefined && confidence >= SURE)
    telemetry.count("SureFailures", 1, { runtime });
  return {
    ...(costUsd !== undefined && { costUsd }),
    ...(tokens !== undefined && { tokens }),
    ...(toolCalls !== undefined && { toolCalls }),
    ...(worldstateDeltas !== undefined && { worldstateDeltas }),
    ...(confidence !== undefined && { confidence }),
  };
}
