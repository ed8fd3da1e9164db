import assert from "node:assert/strict";
import { after, test } from "node:test";
import { withRemoteSkills } from "../../../functions/cards/remote-skills.ts";
import { dynamoNotes } from "../../../shared/cards/dynamodb-notes.ts";
import { dynamoPeers } from "../../../shared/cards/dynamodb-peers.ts";
import { parseDeployment } from "../../../shared/config/deployment.ts";
import { readCard } from "../../../shared/remotes/card.ts";
import { hosted } from "../../cards/support.ts";
import { currentCard, encoded, URL_OF } from "../../remotes/support.ts";
import { startTable } from "../../support/table.ts";

const table = await startTable();
after(() => table.stop());

/** Two agents for one remote, which is looked at once. */
const agents = [hosted("front", { remote: "auditor" }), hosted("back", { remote: "auditor" }), hosted()];
async function skills(url: string): Promise<string[][]> {
  const { remotes } = await dynamoNotes(table.access).read(agents);
  const deployment = parseDeployment({ deployment: "acme", agents: [], remotes: [{ name: "auditor", url }] });
  return withRemoteSkills(agents, deployment, remotes).map((of) => of.skills.map(({ slug }) => slug));
}

test("an agent that is a remote one has the skills of the remote's last good card as well, while that is the same", async () => {
  const audit = { id: "audit", name: "Audit", description: "Audits", tags: [] };
  const read = readCard(encoded(currentCard({ skills: [audit] })), URL_OF);
  assert.ok(read.ok);
  const facts = { transport: "http", id: "auditor", path: "/x", notes: [], firstSeen: 0 } as const;
  const signature = { state: "unsigned" } as const;
  assert.deepEqual(await skills(URL_OF), [["task"], ["task"], ["task"]]);
  await dynamoPeers(table.access).putFacts({ ...facts, url: URL_OF, card: read.value.card, signature }, 0);
  assert.deepEqual(await skills(URL_OF), [["task", "audit"], ["task", "audit"], ["task"]]);
  assert.deepEqual(await skills("https://another.example/a2a"), [["task"], ["task"], ["task"]]);
});
