import fc from "fast-check";
import { type HostedAgent, parseDeployment } from "../../shared/config/deployment.ts";

/** A hosted agent as the configuration gives it; nothing is said that need not be. */
export function hosted(id = "support", over: Partial<HostedAgent> = {}): HostedAgent {
  const [agent] = parseDeployment({
    deployment: "acme",
    agents: [
      {
        id,
        runtime: `acme-${id}`,
        channelRef: id,
        displayName: id,
        description: "",
        version: "1.0.0",
        skills: [{ slug: "task", name: "Task", description: "", tags: [] }],
        policy: {},
        settings: {},
      },
    ],
  }).agents;
  if (agent === undefined) throw new Error("the deployment has no agent");
  return { ...agent, ...over };
}

/** Texts that somebody writes who means no good, or does not think. */
export const hostileText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 60 }),
  fc
    .array(
      fc.constantFrom(
        ..."token tokens seCRet paſſword Password api_key API-KEY apikey credential mcp.json discord_token".split(
          " ",
        ),
        ...["/etc/passwd", "/Users/ada", "/var/", "C:\\x", "d:\\", "/data/x y", "x/var/y"],
        ...[
          "http://localhost:8080/a",
          "https://10.0.0.1/x",
          "ws://127.0.0.1",
          "http://192.168.1.1",
          "wss://172.16.0.9/",
        ],
        ..."12345678901234567 12345678901234567890 123456789012345678901 1234567890123456".split(" "),
        ...[
          "<",
          ">",
          "&",
          "\u2028",
          "\ud800",
          "\udfff",
          "\u0000",
          "\u001b[31m",
          "\u202e",
          "😀",
          " ",
          "",
          "\n",
          "[REDACTED]",
        ],
      ),
      { maxLength: 30 },
    )
    .chain((parts) => fc.constantFrom("", " ", "-", "_").map((between) => parts.join(between))),
  fc
    .tuple(fc.constantFrom("<", "é", "😀", "x", "1", "\u2028", "token"), fc.integer({ min: 1, max: 5_000 }))
    .map(([text, times]) => text.repeat(times)),
);

const slug = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/);

/** An agent whose author has written whatever the configuration lets through. */
export const hostileAgent: fc.Arbitrary<HostedAgent> = fc
  .record({
    id: fc.stringMatching(/^[a-z][a-z-]{0,20}$/),
    displayName: hostileText.filter((text) => text !== ""),
    description: hostileText,
    version: hostileText,
    skills: fc.array(
      fc.record({
        slug,
        name: hostileText,
        description: hostileText,
        tags: fc.array(hostileText, { maxLength: 20 }),
      }),
      { minLength: 1, maxLength: 8 },
    ),
    acceptOne: fc.boolean(),
    copies: fc.constantFrom(1, 1, 1, 1, 40),
  })
  .map(({ id, skills, acceptOne, copies, ...texts }) => {
    const all = [{ slug: "task", name: "Task", description: "", tags: [] }, ...skills];
    const many = Array.from({ length: copies }, (_, copy) =>
      all.map((of) => (copy === 0 ? of : { ...of, slug: `${of.slug.slice(0, 50)}-${copy}` })),
    ).flat();
    const agent = hosted(id, { ...texts, skills: many });
    return { ...agent, policy: { ...agent.policy, acceptSkills: acceptOne ? ["task"] : [] } };
  });

/** What stands in `nats.servers`, and some that cannot. */
export const hostileServer = fc.oneof(
  fc.constantFrom(
    ...[
      "nats://127.0.0.1:4222",
      "tls://nats.example:4222",
      "nats://localhost",
      "nats://[::1]:4222",
      "nats://0x7f.1",
    ],
    ...[
      "nats://2130706433",
      "tls://10.1.2.3:4222",
      "tls://172.31.0.1",
      "nats://[fd00::1]",
      "nats://[::ffff:10.0.0.1]",
    ],
    ...[
      "tls://token.example",
      "nats://broker",
      "nats://nats.internal:4222",
      "nats://169.254.169.254",
      "nats://a.local",
    ],
    ...["nats://12345678901234567.example", "nats://u:secret@nats.example:1/x?token=y#z", "no url", ""],
  ),
  fc.webUrl(),
);
