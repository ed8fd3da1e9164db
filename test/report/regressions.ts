import { type Regression, readRegressions } from "../regressions/regressions.ts";
import { lastSeen, type Seen } from "../regressions/seen.ts";
import { markdownTable } from "./markdown.ts";

/** The section about the faults that were found, and when each one's test was last seen to fail without its mend. */
export function regressionSection(
  regressions = readRegressions(),
  seenOf: (of: Regression) => Seen | undefined = lastSeen,
): string[] {
  const rows = regressions.map((regression) => {
    const { name, story, foundBy, file, title, commit } = regression;
    return [`${name}: ${story}`, foundBy, `${file}: ${title}`, commit, seenText(seenOf(regression))];
  });
  return [
    "## Faults found",
    "",
    "What was wrong with the product, who or what has found it, the test that keeps it away, the commit that has mended it, and",
    "when that test was last seen to fail in a copy of the project without the mend ([regressions.md](regressions.md)).",
    "",
    ...markdownTable(["Fault", "Found by", "Test", "Commit", "Fails without it"], rows),
    "",
    "```sh",
    "npm run regressions",
    "```",
    "",
  ];
}

function seenText(seen: Seen | undefined): string {
  if (seen === undefined) return "not run on this machine";
  const when = seen.at.slice(0, 16);
  return seen.verdict === "fails" ? when : `NO: ${seen.verdict}, ${when}`;
}
