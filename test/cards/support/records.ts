/** A record of the bucket of cards, with whatever is to be otherwise. */
export function peerRecord(agentId: string, over: object = {}) {
  return {
    agentId,
    instanceId: "adam-1",
    card: {
      name: agentId,
      description: "The lobby",
      version: "1.0.0",
      supportedInterfaces: [
        {
          url: "tls://nats.example.net:4222",
          protocolBinding: "urn:kiro-discord-bot:a2a:nats:v1",
          protocolVersion: "1.0",
        },
      ],
      capabilities: { streaming: false, extendedAgentCard: true },
      defaultInputModes: ["text/plain", "application/json; charset=utf-8"],
      defaultOutputModes: ["text/plain"],
      skills: [
        {
          id: "lobby/task",
          name: "Task",
          description: "Does it",
          tags: ["a"],
          inputModes: ["text/plain"],
          outputModes: null,
        },
      ],
    },
    extendedCard: {
      channel_ref: "lobby",
      runtime: "channel",
      display_name: "Lobby",
      discord_guild_id: "101234567890123456",
      discord_channel_id: "no id",
      result_visibility_support: ["proxy", "transparent"],
    },
    expiresAt: "2030-01-01T00:03:00Z",
    publishedAt: "2030-01-01T00:00:00.123456789Z",
    version: "1.0",
    ...over,
  };
}

export const bytesOf = (record: unknown) => new TextEncoder().encode(JSON.stringify(record));

/** A record that holds for three minutes from when it is put, as it lies in the bucket. */
export function putAt(agentId: string, at: number, over: object = {}) {
  const holds = { publishedAt: new Date(at).toISOString(), expiresAt: new Date(at + 180_000).toISOString() };
  return { key: agentId, at, bytes: bytesOf(peerRecord(agentId, { ...holds, ...over })) };
}
