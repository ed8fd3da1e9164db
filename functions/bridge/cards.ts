import type { Msg, NatsConnection } from "@nats-io/transport-node";
import type { PeersBucket, StoredCard } from "../../shared/cards/bucket.ts";
import { isOf } from "../../shared/cards/instance.ts";
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
  /** The hosted agents, by whose ids their cards lie in the bucket. */
  readonly runtimes: readonly string[];
  /** The stack, as cards name it. */
  readonly instance: string;
  readonly telemetry: Telemetry;
  readonly timing: Pick<Timing, "scale">;
  readonly now: () => number;
}

/** A card of ours that lies in the bucket. */
interface Shown {
  readonly runtime: string;
  readonly stored: StoredCard;
}

/** Our cards as they are: the function `cards` alone knows the policies in force, and what it has put says what they are. */
interface Cards {
  readonly bucket: () => Promise<PeersBucket>;
  readonly read: () => Promise<readonly Shown[]>;
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
  const cards = cardsIn(nc, deps);
  const answer = answerer(cards, telemetry);
  const subscription = nc.subscribe(DISCOVER_SUBJECT, {
    callback: (error, message) => {
      if (error === null) answer(message);
      else telemetry.warn("questions for cards cannot be heard", errorFields(error));
    },
  });
  const timer = setTimeout(() => void renew(cards, deps), RENEW_MS / timing.scale).unref();
  return {
    [Symbol.dispose]() {
      clearTimeout(timer);
      if (!nc.isClosed()) subscription.unsubscribe();
    },
  };
}

function cardsIn(nc: NatsConnection, { runtimes, instance }: CardsDeps): Cards {
  let opened: Promise<PeersBucket> | undefined;
  const open = async () => (await import("../../shared/cards/bucket.ts")).ensurePeersBucket(nc);
  const bucket = () => {
    opened ??= open();
    opened.catch(() => {
      opened = undefined;
    });
    return opened;
  };
  return {
    bucket,
    async read() {
      const { get } = await bucket();
      const found = await Promise.all(
        runtimes.map(async (runtime) => ({ runtime, stored: await get(runtime) })),
      );
      // What lies there of another's is not ours to tell.
      return found.flatMap(({ runtime, stored }) => (isOf(stored, instance) ? [{ runtime, stored }] : []));
    },
  };
}

/** The cards are read once a second at the most. */
function answerer({ read }: Cards, telemetry: Telemetry): (message: Msg) => void {
  let [until, answered] = [0, 0];
  let shown: Promise<readonly Shown[]> = Promise.resolve([]);
  const failed = (error: unknown) =>
    telemetry.warn("a question for cards is not answered", errorFields(error));
  return (message) => {
    const now = performance.now();
    if (now >= until) {
      [until, answered] = [now + SECOND_MS, 0];
      shown = read().catch((error: unknown) => {
        failed(error);
        return [];
      });
    }
    if (answered >= MAX_ANSWERS_A_SECOND) return;
    answered++;
    shown
      .then((all) => {
        for (const { stored } of all) message.respond(stored.bytes);
      })
      .catch(failed); // the connection is closed
  };
}

/** Puts each card once more, unless that has changed meanwhile: one that is taken away stays away. */
async function renew({ bucket, read }: Cards, { telemetry, now }: CardsDeps): Promise<void> {
  const failed = (error: unknown, runtime?: string) =>
    telemetry.warn("a card could not be renewed", { runtime, ...errorFields(error) });
  try {
    const [{ replace }, { renewedRecord }] = await Promise.all([
      bucket(),
      import("../../shared/cards/renewed.ts"),
    ]);
    await Promise.all(
      (await read()).map(async ({ runtime, stored }) => {
        try {
          await replace(runtime, renewedRecord(stored.bytes, now()), stored);
        } catch (error) {
          failed(error, runtime);
        }
      }),
    );
  } catch (error) {
    failed(error);
  }
}
