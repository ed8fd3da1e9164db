import assert from "node:assert/strict";
import type { Finding } from "../../cli/doctor/finding.ts";

const textOf = ({ level, part, says }: Finding) => `${level} ${part}: ${says}`;
/** What is found: each that is not as it should be says what to do. */
export function assertFound(findings: readonly Finding[], ...expected: readonly RegExp[]): void {
  const told = findings.map(textOf);
  assert.equal(told.length, expected.length, told.join("\n"));
  for (const [index, pattern] of expected.entries()) assert.match(told[index] ?? "", pattern);
  for (const { level, todo } of findings) assert.equal(level === "ok", todo === undefined);
}
