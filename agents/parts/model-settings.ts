import * as z from "zod";
import { secretRef } from "./secret.ts";

/** A key within a URL would stand in every error that names the URL. */
const baseUrl = z
  .url({ protocol: /^https?$/, error: "expected an http or https URL" })
  .refine((url) => !/[@?#]/.test(url), "expected a URL without user, query and fragment");
const name = z.string().min(1).max(200);

/** Which model is asked, and where: `baseUrl` is what stands before `/chat/completions` or `/messages`. */
export const modelSettings = z.discriminatedUnion("provider", [
  z.strictObject({
    provider: z.literal("openai-compatible"),
    baseUrl,
    name,
    /** Left out where the server wants none, as one on the same machine may. */
    apiKey: secretRef.optional(),
  }),
  z.strictObject({
    provider: z.literal("openai"),
    baseUrl: baseUrl.default("https://api.openai.com/v1"),
    name,
    apiKey: secretRef,
  }),
  z.strictObject({
    provider: z.literal("anthropic"),
    baseUrl: baseUrl.default("https://api.anthropic.com/v1"),
    name,
    apiKey: secretRef,
  }),
]);
export type ModelSettings = z.output<typeof modelSettings>;
