import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as z from "zod";
import { heartbeat } from "../../shared/cards/heartbeat.ts";
import { cardRecord } from "../../shared/cards/record.ts";
import { recordFaults } from "../../shared/cards/validate.ts";
import { DOCS } from "../docs/pages.ts";
import { hosted } from "./support.ts";

const page = readFileSync(join(DOCS, "cards.md"), "utf8");
const [record = "", beat = ""] = Array.from(page.matchAll(/```json\n([\s\S]*?)```/g), ([, json]) => json);
const at = Date.parse("2026-08-01T12:00:00Z");

test("the page's record is valid, and what is published of such an agent", () => {
  const agent = hosted("support", {
    displayName: "Support",
    description: "Answers what customers ask",
    skills: [{ slug: "task", name: "Answer", description: "Answers a question", tags: [] }],
  });
  assert.deepEqual(recordFaults("acme-support", new TextEncoder().encode(record)), []);
  const of = { deployment: "acme", instance: "sluice-acme", guild: "101234567890123456", now: at };
  assert.deepEqual(JSON.parse(record), cardRecord(agent, { ...of, servers: ["tls://nats.example:4222"] }));
});

test("so is the page's heartbeat", () => {
  const of = { runtime: "acme-support", instance: "sluice-acme", version: "1.0.0", startedAt: at };
  const { body } = heartbeat(of);
  assert.deepEqual(JSON.parse(beat), z.looseObject({}).parse(JSON.parse(body)));
});
