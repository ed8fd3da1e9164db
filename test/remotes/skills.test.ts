import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { reconcileSkills } from "../../shared/remotes/skills.ts";

const skill = (id: string) => ({ id, name: `The ${id}`, description: `Does ${id}`, tags: [id] });
const ids = (of: readonly { readonly id: string }[]) => of.map(({ id }) => id);

test("skills of the card come and go, those of the file stay and win", () => {
  const { toAdd, toRemove, skills } = reconcileSkills(
    [skill("new"), skill("kept"), skill("both")],
    [skill("kept"), skill("gone"), skill("filed")],
    [{ name: "both", description: "The operator's words" }, { name: "filed" }],
  );
  assert.deepEqual(toAdd, ["new"]);
  assert.deepEqual(toRemove, ["gone"]);
  assert.deepEqual(skills, [
    { id: "both", name: "The both", description: "The operator's words", tags: ["both"], from: "file" },
    { id: "filed", name: "filed", description: "", tags: [], from: "file" },
    { ...skill("new"), from: "card" },
    { ...skill("kept"), from: "card" },
  ]);
});

test("what is added and removed are the differences, whatever the skills", () => {
  const some = fc.uniqueArray(fc.constantFrom<string>("a", "b", "c", "d", "e", "f"));
  fc.assert(
    fc.property(some, some, some, (card, previous, file) => {
      const written = file.map((name) => ({ name }));
      const { toAdd, toRemove, skills } = reconcileSkills(card.map(skill), previous.map(skill), written);
      const without = (of: string[], ...others: string[][]) => of.filter((id) => !others.flat().includes(id));
      assert.deepEqual(toAdd, without(card, previous, file));
      assert.deepEqual(toRemove, without(previous, card, file));
      assert.deepEqual(new Set(ids(skills)), new Set([...file, ...card]));
      assert.equal(skills.length, new Set(ids(skills)).size);
      for (const { id, from } of skills) assert.equal(from, file.includes(id) ? "file" : "card");
      // What was there of the card, with what came and without what went, is what is there of it.
      const before = new Set(without(previous, file));
      for (const id of toRemove) before.delete(id);
      for (const id of toAdd) before.add(id);
      assert.deepEqual(new Set(ids(skills.filter(({ from }) => from === "card"))), before);
    }),
  );
});
