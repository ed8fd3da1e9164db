/** Line plots as SVG. A library that draws them without a browser brings tens of megabytes; two plots need this much. */

export interface Point {
  readonly x: number;
  /** Null where nothing was measured. */
  readonly y: number | null;
}

export interface Line {
  readonly name: string;
  readonly points: readonly Point[];
}

export interface Axis {
  readonly label: string;
  readonly log?: boolean;
  /** The ends, where they are not those of what is drawn. */
  readonly from?: number;
  readonly to?: number;
}

export interface Panel {
  readonly title: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly lines: readonly Line[];
  /** A height that is not to be passed. */
  readonly bound?: number;
}

const WIDTH = 460;
const PLOT = { left: 58, top: 34, width: 380, height: 220 };
const LEGEND_ROW = 18;
/** Distinct for the colour-blind too (Okabe and Ito, "Color universal design"). */
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 2", "10 4"];
const TICKS = 5;

/** Draws panels side by side. */
export function plot(panels: readonly Panel[]): string {
  const rows = Math.max(...panels.map(({ lines }) => lines.length));
  const height = PLOT.top + PLOT.height + 56 + rows * LEGEND_ROW;
  const width = WIDTH * panels.length;
  const drawn = panels.map((panel, at) => `<g transform="translate(${at * WIDTH} 0)">${panelOf(panel)}</g>`);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`,
    ` font-family="system-ui, sans-serif" font-size="12" fill="#24292f">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...drawn,
    "</svg>\n",
  ].join("\n");
}

type Scale = (value: number) => number;

function panelOf({ title, x, y, lines, bound }: Panel): string {
  const points = lines.flatMap((line) => line.points);
  const xs = points.map((point) => point.x);
  const ys = [...points.flatMap((point) => point.y ?? []), ...(bound === undefined ? [] : [bound])];
  const [fromX, toX] = ends(x, xs);
  const [fromY, toY] = ends({ ...y, from: y.from ?? (y.log === true ? undefined : 0) }, ys);
  const toLeft = scale(x, fromX, toX, PLOT.left, PLOT.left + PLOT.width);
  const toTop = scale(y, fromY, toY, PLOT.top + PLOT.height, PLOT.top);
  const bottom = PLOT.top + PLOT.height;
  const parts = [text(PLOT.left, 20, title, 'font-weight="600" font-size="13"')];
  for (const tick of ticks(y, fromY, toY)) {
    const at = round(toTop(tick));
    parts.push(
      `<line x1="${PLOT.left}" x2="${PLOT.left + PLOT.width}" y1="${at}" y2="${at}" stroke="#e5e8eb"/>`,
    );
    parts.push(text(PLOT.left - 6, at + 4, label(tick), 'text-anchor="end"'));
  }
  const places = x.log === true ? [...new Set(xs)] : ticks(x, fromX, toX);
  for (const tick of places) parts.push(text(toLeft(tick), bottom + 16, label(tick), 'text-anchor="middle"'));
  parts.push(
    `<path d="M${PLOT.left} ${PLOT.top}V${bottom}H${PLOT.left + PLOT.width}" fill="none" stroke="#8c959f"/>`,
  );
  parts.push(text(PLOT.left + PLOT.width / 2, bottom + 34, x.label, 'text-anchor="middle" fill="#57606a"'));
  const middle = PLOT.top + PLOT.height / 2;
  parts.push(
    text(14, middle, y.label, `text-anchor="middle" fill="#57606a" transform="rotate(-90 14 ${middle})"`),
  );
  if (bound !== undefined) {
    const at = round(toTop(bound));
    parts.push(
      `<line x1="${PLOT.left}" x2="${PLOT.left + PLOT.width}" y1="${at}" y2="${at}" stroke="#cf222e" stroke-dasharray="4 4"/>`,
    );
  }
  for (const [at, line] of lines.entries()) parts.push(lineOf(line, at, toLeft, toTop));
  return parts.join("\n");
}

function lineOf({ name, points }: Line, at: number, toLeft: Scale, toTop: Scale): string {
  const colour = COLOURS[at % COLOURS.length] ?? "#000000";
  const dash = DASHES[at % DASHES.length] ?? "";
  const places = points.flatMap(({ x, y }) => (y === null ? [] : [`${round(toLeft(x))},${round(toTop(y))}`]));
  const top = PLOT.top + PLOT.height + 54 + at * LEGEND_ROW;
  const stroke = `fill="none" stroke="${colour}" stroke-width="2" stroke-dasharray="${dash}"`;
  return [
    `<polyline points="${places.join(" ")}" ${stroke}/>`,
    ...places.map((place) => {
      const [left, up] = place.split(",");
      return `<circle cx="${left}" cy="${up}" r="3" fill="${colour}"/>`;
    }),
    `<line x1="${PLOT.left}" x2="${PLOT.left + 28}" y1="${top - 4}" y2="${top - 4}" ${stroke}/>`,
    text(PLOT.left + 36, top, name),
  ].join("\n");
}

function ends({ log, from, to }: Axis, values: readonly number[]): [number, number] {
  const least = Math.min(...values);
  const most = Math.max(...values);
  if (log === true)
    return [from ?? 10 ** Math.floor(Math.log10(least)), to ?? 10 ** Math.ceil(Math.log10(most))];
  return [from ?? least, to ?? most * 1.08];
}

function scale({ log }: Axis, from: number, to: number, start: number, end: number): Scale {
  const of = log === true ? Math.log10 : (value: number) => value;
  const width = of(to) - of(from) || 1;
  return (value) => start + ((of(value) - of(from)) / width) * (end - start);
}

/** Round numbers between the ends; on a logarithmic axis the powers of ten. */
function ticks({ log }: Axis, from: number, to: number): number[] {
  if (log === true) {
    const powers: number[] = [];
    for (let power = Math.ceil(Math.log10(from)); power <= Math.log10(to); power++) powers.push(10 ** power);
    return powers;
  }
  const rough = (to - from) / TICKS;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5].find((factor) => factor * magnitude >= rough) ?? 10) * magnitude;
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.floor(to / step) - first + 1 }, (_, n) => (first + n) * step);
}

function label(value: number): string {
  return Number(value.toPrecision(6)).toLocaleString("en");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function text(x: number, y: number, content: string, more = ""): string {
  const safe = content.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${round(x)}" y="${round(y)}" ${more}>${safe}</text>`;
}
