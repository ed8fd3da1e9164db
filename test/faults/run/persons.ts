import { setTimeout as wait } from "node:timers/promises";
import { readEvent } from "../../../shared/wire/index.ts";
import type { Chance } from "./chance.ts";
import type { EventRecord } from "./ledger.ts";
import type { Given, PeerBook } from "./peer-book.ts";
import type { Manner } from "./specs.ts";

const LATE_MS = { from: 500, to: 9_000 };

/** Those who are asked: they answer in their manner, late, twice, wrongly, or never. */
export class Persons {
  readonly #book: PeerBook;
  readonly #chance: Chance;
  /** How often each question was put. */
  readonly #put = new Map<string, number>();

  constructor(book: PeerBook, chance: Chance) {
    this.#book = book;
    this.#chance = chance;
  }

  /** Takes an event; answers if it asks something. */
  async take({ subject, body }: EventRecord): Promise<void> {
    const read = readEvent(subject, Buffer.from(body));
    if (!read.ok) return;
    const { state, taskId = "", revision, content } = read.value;
    if (state !== "TASK_STATE_INPUT_REQUIRED" && state !== "TASK_STATE_AUTH_REQUIRED") return;
    const given = this.#book.given.get(taskId);
    const asked = Object.entries(given?.spec.persons ?? {}).find(([name]) => content.endsWith(`${name}?`));
    if (given === undefined || asked === undefined) return;
    const [name, manner] = asked;
    const times = (this.#put.get(`${taskId} ${name}`) ?? 0) + 1;
    this.#put.set(`${taskId} ${name}`, times);
    const kind = state === "TASK_STATE_INPUT_REQUIRED" ? "input_reply" : "auth_reply";
    await this.#answer(given, { kind, manner, revision: revision + 1, times });
  }

  async #answer(
    given: Given,
    {
      kind,
      manner,
      revision,
      times,
    }: { kind: "input_reply" | "auth_reply"; manner: Manner; revision: number; times: number },
  ): Promise<void> {
    if (manner === "never") return;
    if (manner === "late") await wait(this.#chance.int(LATE_MS.from, LATE_MS.to));
    const input = kind === "input_reply";
    const right = input
      ? { input: this.#chance.pick(["red", "green", "blue"]) }
      : { approve: manner !== "denies" };
    const wrong = input ? { input: "purple" } : { approve: "perhaps" };
    const first = manner === "wrongly first" && times === 1;
    await this.#book.control(given, {
      kind,
      revision,
      a2a: first ? wrong : right,
      good: !first,
      again: manner === "twice" ? 1 : 0,
    });
    // Another answer under an id of its own, by somebody who has seen no more: it comes too late.
    if (manner === "twice")
      await this.#book.control(given, {
        kind,
        revision,
        a2a: right,
        good: true,
        messageId: `${given.taskId}_${kind}_too`,
      });
  }
}
