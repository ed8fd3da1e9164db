import * as z from "zod";
import { CliError, EXIT } from "./errors.ts";
import { clientSettings, type Place, reach } from "./place.ts";
import { cleanLine } from "./text.ts";

/** Longer than any function but `work` may take: it is its time that is over, not ours. */
const WAIT_MS = 60_000;

const names = z.record(z.string(), z.string());
const failure = z.object({ errorMessage: z.string().catch("it does not say why") });

/**
 * Calls a function of a stack, and waits for its answer. In AWS this needs `lambda:InvokeFunction`.
 *
 * @param name as the stack calls it, such as `cards`
 * @returns its answer, as JSON.parse gave it
 * @throws CliError `unreachable` when nobody answers or calls are refused; `failed` when the function fails
 */
export async function invokeFunction(place: Place, name: string, event: unknown): Promise<unknown> {
  const FunctionName = physicalName(place, name);
  if (place.local !== undefined && place.local.lambda === undefined) throw older(place);
  const { InvokeCommand, LambdaClient } = await import("@aws-sdk/client-lambda");
  const settings = clientSettings(place, "lambda");
  const client = new LambdaClient({
    ...settings,
    // Asked twice it would do all of it twice.
    maxAttempts: 1,
    requestHandler: { ...settings.requestHandler, requestTimeout: WAIT_MS },
  });
  try {
    const { Payload, FunctionError } = await reach(
      `the function ${name} of ${place.label}`,
      client.send(new InvokeCommand({ FunctionName, Payload: JSON.stringify(event) })),
    );
    const answer = parsed(new TextDecoder().decode(Payload));
    if (FunctionError === undefined) return answer;
    const { errorMessage } = failure.catch({ errorMessage: "it does not say why" }).parse(answer);
    throw new CliError(
      EXIT.failed,
      `the function ${name} of ${place.label} has failed: ${cleanLine(errorMessage, 500)}`,
    );
  } finally {
    client.destroy();
  }
}

function physicalName(place: Place, name: string): string {
  const read = names.safeParse(parsed(place.outputs.FunctionNames ?? ""));
  const found = read.success ? read.data[name] : undefined;
  if (found === undefined) throw older(place);
  return found;
}

function older({ label }: Place): CliError {
  return new CliError(
    EXIT.failed,
    `${label} does not tell how its functions are called: it is of an older version`,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
