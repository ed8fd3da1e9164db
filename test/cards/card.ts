import { type AgentCard, agentCard, type CardFacts } from "../../shared/cards/agent-card.ts";
import { type HostedAgent, parseDeployment } from "../../shared/config/deployment.ts";

/** A deployment of one agent. */
export function deploymentOf(agent: Partial<HostedAgent> = {}, policy: object = {}) {
  const deployment = parseDeployment({
    deployment: "acme",
    nats: { servers: ["tls://nats.example.net:4222"] },
    agents: [
      {
        id: "support",
        runtime: "acme-support",
        channelRef: "support",
        displayName: "Support",
        description: "Answers questions",
        version: "1.2.0",
        skills: [
          { slug: "task", name: "Answer", description: "Answers a question", tags: ["faq"] },
          { slug: "refund", name: "Refund", description: "", tags: [] },
        ],
        settings: {},
        policy,
        ...agent,
      },
    ],
  });
  const [hosted] = deployment.agents;
  if (hosted === undefined) throw new Error("no agent");
  return { deployment, agent: hosted };
}

/** Its card. */
export function cardOf(facts?: CardFacts, ...of: Parameters<typeof deploymentOf>): AgentCard {
  const { deployment, agent } = deploymentOf(...of);
  return agentCard(agent, deployment, facts);
}
