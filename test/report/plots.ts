import type { Recorded } from "../bench/recording.ts";
import { type Panel, plot } from "./plot.ts";

const BOUND = 1.5;

/** The plots of a program's last run: a name for the file, and the SVG. */
export function plotsOf({ name, series }: Recorded): { readonly title: string; readonly svg: string }[] {
  const names = [...new Set(series.map((line) => line.plot))];
  if (names.length === 0) return [];
  const panels = names.map((of): Panel => {
    const lines = series.filter((line) => line.plot === of);
    return name === "latency" ? latency(lines) : growth(of, lines);
  });
  return [{ title: name, svg: plot(panels) }];
}

type Lines = Recorded["series"];

function latency(lines: Lines): Panel {
  return {
    title: "Published → result under load",
    x: { label: "tasks a second", from: 0 },
    y: { label: "ms", log: true },
    lines,
  };
}

function growth(of: string, lines: Lines): Panel {
  const all = lines.flatMap(({ points }) => points.map(({ y }) => y ?? 0));
  return {
    title: `Growth of ${of}`,
    x: { label: of, log: true, from: Math.min(...lines.flatMap(({ points }) => points.map(({ x }) => x))) },
    y: { label: "× that at the smallest", from: 0, to: Math.max(2, ...all) },
    lines,
    bound: BOUND,
  };
}
