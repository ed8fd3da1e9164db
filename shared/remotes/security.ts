import * as z from "../zod.ts";

/** A way to say who one is, as a card has it (A2A 1.0 §4.5, 0.3.0 §5.5.3): for whoever looks why an agent refuses us. */
export interface SecurityScheme {
  readonly name: string;
  readonly kind: "apiKey" | "http" | "oauth2" | "openIdConnect" | "mtls" | "unknown";
  /** The header, query or cookie of an `apiKey`; the scheme of `http`. */
  readonly detail?: string | undefined;
}

/** More are not looked at. */
const MOST_SCHEMES = 16;

const text = () => z.string().check(z.maxLength(128));
/** Each scheme of 1.0 under its name, of 0.3 by its `type`. */
const readers = z.whenUsed(() => {
  const named = z.object({ name: text() });
  const http = z.object({ scheme: text() });
  const anything = z.looseObject({});
  const of = <T>(
    schema: z.ZodMiniType<T>,
    kind: SecurityScheme["kind"],
    detail: (from: T) => string | undefined,
  ) => ({
    read: (value: unknown) => {
      const parsed = schema.safeParse(value);
      return parsed.success ? { kind, detail: detail(parsed.data) } : undefined;
    },
  });
  const none = () => undefined;
  return [
    of(z.object({ apiKeySecurityScheme: named }), "apiKey", (from) => from.apiKeySecurityScheme.name),
    of(z.object({ httpAuthSecurityScheme: http }), "http", (from) => from.httpAuthSecurityScheme.scheme),
    of(z.object({ oauth2SecurityScheme: anything }), "oauth2", none),
    of(z.object({ openIdConnectSecurityScheme: anything }), "openIdConnect", none),
    of(z.object({ mtlsSecurityScheme: anything }), "mtls", none),
    of(z.object({ type: z.literal("apiKey"), name: text() }), "apiKey", (from) => from.name),
    of(z.object({ type: z.literal("http"), scheme: text() }), "http", (from) => from.scheme),
    of(z.object({ type: z.literal("oauth2") }), "oauth2", none),
    of(z.object({ type: z.literal("openIdConnect") }), "openIdConnect", none),
    of(z.object({ type: z.literal("mutualTLS") }), "mtls", none),
  ];
});

/** The schemes of a card; none when it has no map of them. They are told, and nothing follows from them. */
export function readSchemes(schemes: unknown): SecurityScheme[] {
  if (typeof schemes !== "object" || schemes === null || Array.isArray(schemes)) return [];
  return Object.entries(schemes)
    .filter(([name]) => name.length > 0 && name.length <= 128 && !/\p{C}/u.test(name))
    .slice(0, MOST_SCHEMES)
    .map(([name, value]: [string, unknown]) => {
      const found = readers()
        .map(({ read }) => read(value))
        .find((of) => of !== undefined);
      const detail = found?.detail;
      return { name, kind: found?.kind ?? "unknown", ...(detail !== undefined && { detail }) };
    });
}
