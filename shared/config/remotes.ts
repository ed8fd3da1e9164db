import * as z from "zod";
import { BLAST_RADII, HITL_MODES } from "../remotes/hitl/scales.ts";
import type { Finding } from "./config-error.ts";
import {
  headerName,
  headerValue,
  REMOTE_CREDENTIALS_FORM,
  REMOTE_NAME_FORM,
  REMOTE_URL_FORM,
  remoteCredentials,
  remoteName,
  remoteUrl,
  skillName,
  variableName,
} from "./remote-forms.ts";

/** The section `remotes` of `agents.yaml`: A2A agents over HTTP. */

/** As many as are asked for their cards, and looked after, within a minute even if none of them answers. */
export const MAX_REMOTES = 100;

const auth = z.strictObject({
  scheme: z
    .enum(["apiKey", "bearer", "hmac"])
    .default("apiKey")
    .describe(
      "`apiKey` is the header `X-API-Key`, `bearer` is `Authorization`, `hmac` a signature of each request.",
    ),
  credentials: z
    .string(REMOTE_CREDENTIALS_FORM)
    .check(remoteCredentials())
    .describe(
      "Where the key, the token or the shared secret is: in Secrets Manager, in a file of this machine, or in an environment variable. It is read before each exchange: one that is missing or empty is an error before anything is asked, and doctor tells of it.",
    ),
});

const hitlFields = {
  mode: z
    .enum(HITL_MODES)
    .optional()
    .describe("Who must agree before something is sent, at least: [hitl.md](hitl.md)."),
  radius: z.enum(BLAST_RADII).optional().describe("How far what it does reaches, at least."),
};
/** The longest that an approval may be waited for, in seconds: as long as any question (docs/limits.md). */
export const MAX_APPROVAL_SEC = 2_592_000;

const skill = z.union([
  z.string().check(skillName()),
  z.strictObject({
    name: z.string().check(skillName()).describe("The skill's id on the agent's card."),
    description: z.string().max(2_000).optional().describe("What it does; without it what the card says."),
    hitl: z
      .strictObject(hitlFields)
      .optional()
      .describe("Stricter than the card is of this skill; never less strict."),
  }),
]);

/** What there is one of, told by the place of the second. */
function once<T>(texts: readonly T[], nameOf: (of: T) => string, report: (at: number) => void): void {
  const seen = new Set<string>();
  for (const [at, of] of texts.entries()) {
    if (seen.has(nameOf(of))) report(at);
    seen.add(nameOf(of));
  }
}

const skills = z
  .array(skill)
  .max(256)
  .transform((all) => all.map((of) => (typeof of === "string" ? { name: of } : of)))
  .superRefine((all, context) => {
    once(
      all,
      ({ name }) => name,
      (at) => context.addIssue({ code: "custom", path: [at], message: "expected each skill once" }),
    );
  });

const fields = z.strictObject({
  name: z
    .string(REMOTE_NAME_FORM)
    .check(remoteName())
    .describe("What it is called here: no two alike, whatever their case, and none like a hosted agent."),
  url: z
    .string(REMOTE_URL_FORM)
    .check(...remoteUrl())
    .describe(
      "Where it is asked, which is also where its card is looked for. What a card says of addresses is never followed.",
    ),
  auth: auth.optional().describe("Who we are to it. Without it nobody: nothing is sent."),
  apiKeyEnv: z
    .string()
    .check(variableName())
    .optional()
    .describe("An older way to write `auth: { scheme: apiKey, credentials: env:NAME }`; reported at synth."),
  headers: z
    .record(z.string().check(...headerName()), z.string().check(headerValue()))
    .refine((of) => Object.keys(of).length <= 32, { error: "expected at most 32 headers" })
    .default({})
    .describe("Sent with each request; what Sluice sets itself cannot be among them. No place for secrets."),
  streaming: z
    .boolean()
    .default(false)
    .describe("Whether it can stream, until its card says whether it does."),
  external: z
    .boolean()
    .default(false)
    .describe("Whether it is outside of our network, so that it calls back at our public address."),
  skills: skills
    .default([])
    .describe("Skills that it has whatever its card says: a name, or `{ name, description }`."),
  hitl: z
    .strictObject({
      ...hitlFields,
      approvalSec: z
        .number()
        .int()
        .min(1)
        .max(MAX_APPROVAL_SEC)
        .optional()
        .describe("How long an approval is waited for, in seconds; a day without it. Then it is denied."),
    })
    .optional()
    .describe("Stricter than its card is of any of its skills; never less strict."),
  subscribesTo: z
    .array(z.string().min(1).max(256))
    .max(100)
    .default([])
    .describe("Topics that it listens to; for whoever reads the file."),
});

const remote = fields
  .refine((of) => of.auth === undefined || of.apiKeyEnv === undefined, {
    error: "expected either auth or apiKeyEnv",
    path: ["apiKeyEnv"],
  })
  .transform(({ apiKeyEnv, ...of }) =>
    apiKeyEnv === undefined
      ? of
      : { ...of, auth: { scheme: "apiKey" as const, credentials: `env:${apiKeyEnv}` } },
  );
/** An A2A agent over HTTP, as the operator has it; each field is explained in docs/configuration.md. */
export type RemoteConfig = z.output<typeof remote>;

export const remotes = z
  .array(remote)
  .max(MAX_REMOTES)
  .superRefine((all, context) => {
    once(
      all,
      ({ name }) => name.toLowerCase(),
      (at) =>
        context.addIssue({
          code: "custom",
          path: [at, "name"],
          message: "expected a name that no other remote has, whatever its case",
        }),
    );
  });

/** Remotes that are called like somebody else whom a task may be meant for. */
export function takenNames(remotes: readonly RemoteConfig[], taken: ReadonlySet<string>): Finding[] {
  const others = new Set([...taken].map((name) => name.toLowerCase()));
  return remotes.flatMap(({ name }, at) =>
    others.has(name.toLowerCase())
      ? [
          {
            path: ["remotes", at, "name"],
            message: `expected another name: ${name} is an agent of this deployment`,
          },
        ]
      : [],
  );
}

/** Headers without a value: they would not be sent at all, for what is empty elsewhere in the file means the default. */
export function emptyHeaders(sections: unknown): Finding[] {
  const headers = z.record(z.string(), z.unknown()).nullish();
  const parsed = z.object({ remotes: z.array(z.looseObject({ headers })) }).safeParse(sections);
  if (!parsed.success) return [];
  return parsed.data.remotes.flatMap((of, at) =>
    Object.entries(of.headers ?? {})
      .filter(([, value]) => value === null)
      .map(([name]) => {
        const named = z
          .string()
          .check(...headerName())
          .safeParse(name);
        const message = named.error?.issues[0]?.message ?? "expected a header's value, got nothing";
        return { path: ["remotes", at, "headers", name], message };
      }),
  );
}

/** What is still read, but has a better way by now. */
export function legacyRemotes(sections: unknown): Finding[] {
  const read = z.object({ remotes: z.array(z.looseObject({ apiKeyEnv: z.string().optional() })) });
  const parsed = read.safeParse(sections);
  if (!parsed.success) return [];
  return parsed.data.remotes.flatMap(({ apiKeyEnv }, at) =>
    apiKeyEnv === undefined
      ? []
      : [
          {
            path: ["remotes", at, "apiKeyEnv"],
            message: `legacy; write auth: { scheme: apiKey, credentials: env:${apiKeyEnv} }`,
          },
        ],
  );
}
