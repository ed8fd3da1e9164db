import { type Circuit, openUntil } from "../../shared/policy/choosing/circuit.ts";
import { countText, localTime } from "../text.ts";

/** Nobody has called the agent, or it has not failed for a day. */
const UNTOUCHED: Circuit = { era: 0, failures: 0 };

/** The circuits of remote agents as the table has them, by the agents' names. */
export type Circuits = ReadonlyMap<string, Circuit>;

/** How the circuit of a remote agent stands (docs/choosing.md, circuits). */
export interface Standing {
  /** `half_open`: it was open, and the next call tries the agent. */
  readonly state: "closed" | "open" | "half_open";
  /** In a row, while it is closed. */
  readonly failures: number;
  /** Until when nobody calls the agent, or until when nobody did, in milliseconds since 1970; nothing while it is closed. */
  readonly until?: number;
}

/** How an agent's circuit stands; nothing where the table is not known. */
export function standingOf(circuits: Circuits | undefined, name: string, now: number): Standing | undefined {
  if (circuits === undefined) return undefined;
  const circuit = circuits.get(name) ?? UNTOUCHED;
  const { failures, until } = circuit;
  if (until === undefined) return { state: "closed", failures };
  return { state: openUntil(circuit, now) === undefined ? "half_open" : "open", failures, until };
}

export function circuitText(standing: Standing | undefined): string {
  if (standing === undefined) return "-";
  const { state, failures, until } = standing;
  if (state === "half_open") return "half open";
  if (until !== undefined) return `open until ${localTime(new Date(until))}`;
  return failures === 0 ? "closed" : `closed, ${countText(failures, "failure")}`;
}

/** As JSON (docs/command.md, JSON). */
export function circuitRecord(standing: Standing | undefined): object | null {
  if (standing === undefined) return null;
  const { until, ...of } = standing;
  return { ...of, until: until === undefined ? null : new Date(until).toISOString() };
}
