import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { FUNCTION_NAMES } from "../../../infra/bundle.ts";
import type { Chance } from "./chance.ts";

/** How far clocks may be apart, before the time scale, in milliseconds. */
const APART_MS = 300_000;

/** The environment by which each function's clock goes wrong, no two by more than five scaled minutes. */
export function clocksOf(chance: Chance, timeScale: number): Record<string, string> {
  const most = Math.floor(APART_MS / timeScale / 2);
  const clocks = FUNCTION_NAMES.map((name) => [
    `FAULTS_CLOCK_${name.toUpperCase()}`,
    String(chance.int(-most, most)),
  ]);
  const preload = pathToFileURL(join(import.meta.dirname, "clock-main.ts")).href;
  return { ...Object.fromEntries(clocks), NODE_OPTIONS: `--enable-source-maps --import ${preload}` };
}
