import type { Msg, NatsConnection } from "@nats-io/transport-node";
import type { OwnCard } from "../../shared/cards/own.ts";
import type { Timing } from "../../shared/config/timing.ts";
import { errorFields, type Telemetry } from "../../shared/telemetry/index.ts";

/** On which whoever looks for agents asks for their cards (docs/cards.md, asking). */
export const DISCOVER_SUBJECT = "a2a.v1.card.discover";
/** More questions than this in a second are not answered: who asks so often is no reader. */
export const MAX_ANSWERS_A_SECOND = 10;
const SECOND_MS = 1_000;
/**
 * When a run renews the cards, in milliseconds after its start: between two runs of `cards`, and so late that one of
 * those may be missed before a card is 90 s old, which is when peers take it for stale.
 */
const RENEW_MS = 45_000;

interface CardsDeps {
  /** The agents' cards, made for this moment. */
  readonly cards: () => readonly OwnCard[];
  readonly telemetry: Telemetry;
  readonly timing: Pick<Timing, "scale">;
}

/**
 * Answers whoever asks for cards, one message for each, and renews the cards in the bucket once. None of it is waited for
 * by what the bridge is there for, and whatever fails is only told.
 *
 * Not as a queue group: a bridge that is frozen, or has lost its connection, would still be given questions. Two bridges
 * at once both answer, with the same cards.
 *
 * @returns what ends it
 */
export function offerCards(nc: NatsConnection, deps: CardsDeps): Disposable {
  const { telemetry, timing } = deps;
  const answer = answerer(deps.cards);
  const subscription = nc.subscribe(DISCOVER_SUBJECT, {
    callback: (error, message) => {
      if (error === null) answer(message);
      else telemetry.warn("questions for cards cannot be heard", errorFields(error));
    },
  });
  const timer = setTimeout(() => void renew(nc, deps), RENEW_MS / timing.scale).unref();
  return {
    [Symbol.dispose]() {
      clearTimeout(timer);
      if (!nc.isClosed()) subscription.unsubscribe();
    },
  };
}

/** The cards are made once a second at the most. */
function answerer(cards: CardsDeps["cards"]): (message: Msg) => void {
  let [until, answered] = [0, 0];
  let made: readonly OwnCard[] = [];
  return (message) => {
    const now = performance.now();
    if (now >= until) {
      [until, answered] = [now + SECOND_MS, 0];
      made = cards();
    }
    if (answered >= MAX_ANSWERS_A_SECOND) return;
    answered++;
    for (const { bytes } of made) message.respond(bytes);
  };
}

async function renew(nc: NatsConnection, { cards, telemetry }: CardsDeps): Promise<void> {
  const failed = (error: unknown, runtime?: string) =>
    telemetry.warn("a card could not be renewed", { runtime, ...errorFields(error) });
  try {
    const { openPeersBucket } = await import("../../shared/cards/bucket.ts");
    const bucket = await openPeersBucket(nc);
    await Promise.all(
      cards().map(({ runtime, bytes }) =>
        bucket.put(runtime, bytes).catch((error: unknown) => failed(error, runtime)),
      ),
    );
  } catch (error) {
    failed(error);
  }
}
