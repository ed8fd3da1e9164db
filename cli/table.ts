/**
 * Lines of a table whose columns are as wide as their widest cell. Cells must be clean and on one line.
 *
 * @param width to which lines are cut: that of a terminal
 */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  width = Number.POSITIVE_INFINITY,
): string[] {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  return [head, ...rows].map((row) => {
    const line = row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
    return line.length <= width ? line : `${line.slice(0, Math.max(0, width - 1)).trimEnd()}…`;
  });
}
