/** A sign of life on its subject; no envelope, and nothing that must not be lost (docs/cards.md, heartbeats). */
export function heartbeat(of: {
  /** The agent's runtime. */
  readonly runtime: string;
  readonly instance: string;
  /** The agent's, as its card has it. */
  readonly version: string;
  /** When the process has begun that sends it, in milliseconds since 1970. */
  readonly startedAt: number;
}): { readonly subject: string; readonly body: string } {
  const { runtime, instance, version, startedAt } = of;
  return {
    subject: `a2a.v1.heartbeat.${runtime}.${instance}`,
    // How many tasks are active is counted where tasks are (docs/metrics.md); to readers its absence is 0.
    body: JSON.stringify({
      agentId: runtime,
      instanceId: instance,
      status: "online",
      startedAt: new Date(startedAt).toISOString(),
      version,
    }),
  };
}
