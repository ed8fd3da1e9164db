/**
 * What all peers agree on of the bucket in which agents show their cards (docs/cards.md): its name, its bounds, its times.
 * Its stream and its subjects are those of any key-value bucket (NATS ADR-8, JetStream based Key-Value Stores).
 */
export const PEERS_BUCKET = "A2A_PEERS";
export const PEERS_STREAM = `KV_${PEERS_BUCKET}`;
export const PEERS_SUBJECTS = `$KV.${PEERS_BUCKET}.`;

/** The longest record that readers take, in bytes; the bucket's bound, too. */
export const MAX_RECORD_BYTES = 65_536;
/** How long a card holds after it was published, in milliseconds: as long as the bucket keeps it. */
export const CARD_TTL_MS = 180_000;
/** When an agent is taken for gone that puts no new record, in milliseconds; agents put one each minute. */
export const STALE_AFTER_MS = 90_000;
