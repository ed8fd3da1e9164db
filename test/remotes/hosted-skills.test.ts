import assert from "node:assert/strict";
import { test } from "node:test";
import { readCard } from "../../shared/remotes/card.ts";
import { skillsOf, skillsOfFile } from "../../shared/remotes/hosted-skills.ts";

const skill = (id: string, of: object = {}) => ({
  id,
  name: `Name of ${id}`,
  description: `Does ${id}`,
  tags: ["t"],
  ...of,
});

/** What is known of a remote whose card has these skills. */
function factsWith(skills: readonly object[]) {
  const json = {
    name: "r",
    supportedInterfaces: [{ url: "x", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    skills,
  };
  const read = readCard(Buffer.from(JSON.stringify(json)), "https://r.example/a2a");
  assert.ok(read.ok);
  return { card: read.value.card };
}

const file = (...skills: { name: string; description?: string }[]) => ({ name: "r", skills });

test("before there is a card the skills are those of the file, or one for everything", () => {
  assert.deepEqual(skillsOfFile(file({ name: "a", description: "A" })).skills, [
    { slug: "a", name: "a", description: "A", tags: [] },
  ]);
  const { skills } = skillsOfFile(file());
  assert.deepEqual(
    skills.map(({ slug }) => slug),
    ["task"],
  );
  assert.deepEqual(skillsOf({ skills: [...skills], remote: "r" }, undefined).skills, skills);
});

test("those of a card come besides, and go with it; what the file says goes before", () => {
  const skills = [...skillsOfFile(file({ name: "a", description: "of the file" }, { name: "b" })).skills];
  const facts = factsWith([skill("b"), skill("c"), skill("a")]);
  assert.deepEqual(
    skillsOf({ skills, remote: "r" }, facts).skills.map(({ slug, name, description, tags }) => [
      slug,
      name,
      description,
      tags,
    ]),
    [
      ["a", "Name of a", "of the file", ["t"]],
      ["b", "Name of b", "Does b", ["t"]],
      ["c", "Name of c", "Does c", ["t"]],
    ],
  );
  assert.equal(skillsOf({ skills, remote: "r" }, factsWith([])).skills.length, 2);
});

test("what is no slug, or a word that peers blank, is left out and noted", () => {
  const facts = factsWith([
    skill("a/b"),
    skill("Ärger"),
    skill("get_token"),
    skill("x".repeat(65)),
    skill("fine"),
  ]);
  const { skills, notes } = skillsOf({ skills: [], remote: "r" }, facts);
  assert.deepEqual(
    skills.map(({ slug }) => slug),
    ["fine"],
  );
  assert.equal(notes.length, 4);
  assert.match(notes[2] ?? "", /^skill "get_token": left out: peers blank token in cards$/);
});

test("an agent that is no remote's has the skills of its file", () => {
  const skills = [{ slug: "task", name: "Task", description: "", tags: [] }];
  assert.equal(skillsOf({ skills }, factsWith([skill("c")])).skills, skills);
});
