import { Command } from "commander";
import * as z from "zod";
import type { Finding, Level } from "./doctor/finding.ts";
import { CliError, EXIT } from "./errors.ts";
import type { Home } from "./home.ts";
import { knownNats } from "./nats.ts";
import { common, STACK, withCommon } from "./options.ts";
import { type Output, processOutput } from "./output.ts";
import type { Place } from "./place.ts";
import { repeatPlace } from "./repeat.ts";
import { currentHome } from "./session.ts";
import { USUAL_START } from "./start-again.ts";

const options = common.extend({ stack: z.string().optional() });
type Options = z.infer<typeof options>;

export function doctorCommand(): Command {
  return withCommon(new Command("doctor"))
    .description("look whether everything is as it should be, and say what to do; nothing is changed")
    .option(...STACK)
    .action(async (given: unknown) => {
      process.exitCode = await doctor(options.parse(given));
    });
}

async function doctor(given: Options): Promise<number> {
  const out = processOutput(given.json);
  // The clients of AWS take long to load.
  const [{ examineAll }, { checkReadiness }] = await Promise.all([
    import("./doctor/examine.ts"),
    import("./doctor/a2a/readiness.ts"),
  ]);
  out.waitingFor("looking");
  const { home, place, findings: none } = await placeOf(currentHome(given, { tolerant: true }), given);
  // Of a stack that cannot be read its NATS is not known either; that of this folder is another's.
  const isUnknown = given.stack !== undefined && place === undefined && given.nats === undefined;
  const where = isUnknown ? undefined : knownNats(given, process.env, home);
  const [parts, readiness] = await Promise.all([
    examineAll(home, place, where),
    checkReadiness(home, place, where),
  ]);
  const isTold = (of: Finding) => parts.some(({ part, says }) => part === of.part && says === of.says);
  const a2a = readiness.filter((of) => !isTold(of));
  out.done();
  for (const finding of [...none, ...parts]) tell(out, finding);
  if (a2a.length > 0) out.line("\nA2A: whether peers can work with our agents, and ours with them");
  for (const finding of a2a) tell(out, finding);
  const findings = [...none, ...parts, ...a2a];
  out.line(summary(findings));
  return findings.some(({ level }) => level === "wrong") ? EXIT.failed : EXIT.ok;
}

async function placeOf(
  home: Home,
  { stack: name }: Options,
): Promise<{ home: Home; place?: Place; findings: readonly Finding[] }> {
  const [{ findPlace }, { stackHome }, { wrong }] = await Promise.all([
    import("./place.ts"),
    import("./stack-home.ts"),
    import("./doctor/finding.ts"),
  ]);
  try {
    const place = await findPlace(home, name);
    return { home: stackHome(home, place), place, findings: [] };
  } catch (error) {
    if (!(error instanceof CliError) || error.exitCode !== EXIT.unreachable) throw error;
    const todo =
      name === undefined
        ? (home.start ?? USUAL_START)
        : "see that AWS_REGION is the region of the stack, and as whom `aws sts get-caller-identity` sees you";
    return { home, findings: [wrong("stack", error.message, todo)] };
  }
}

function tell(out: Output, { level, part, says, todo }: Finding): void {
  const { green, yellow, red, dim } = out.colours;
  const shade = { ok: green, warning: yellow, wrong: red }[level];
  const advice = todo && repeatPlace(todo);
  out.record({ level, part, says, todo: advice ?? null });
  out.line(`${shade(level.padEnd(7))}  ${part}: ${says}`);
  if (advice !== undefined) out.line(`         ${dim("→")} ${advice}`);
}

function summary(findings: readonly Finding[]): string {
  const count = (level: Level) => findings.filter((finding) => finding.level === level).length;
  const [wrongs, warnings] = [count("wrong"), count("warning")];
  if (wrongs + warnings === 0) return "\nall is well";
  return `\n${wrongs} wrong, ${warnings} ${warnings === 1 ? "warning" : "warnings"}`;
}
