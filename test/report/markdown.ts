import { short } from "../bench/print.ts";

export type Cell = string | number | null;

/** A table in Markdown; columns of numbers to the right. */
export function markdownTable(head: readonly string[], rows: readonly (readonly Cell[])[]): string[] {
  const isNumeric = (column: number) =>
    rows.every((row) => typeof row[column] === "number" || row[column] === null || row[column] === "");
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    line(head.map(escaped)),
    line(head.map((_, column) => (isNumeric(column) ? "---:" : "---"))),
    ...rows.map((row) => line(row.map(shown))),
  ];
}

function shown(cell: Cell): string {
  if (cell === null) return "";
  return escaped(typeof cell === "number" ? short(cell) : cell);
}

function escaped(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", "<br>");
}
