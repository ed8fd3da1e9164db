/** A time during which something was not as it should be, on this machine's clock. */
export interface Trouble {
  /** A function's process by its pid, or `dynamodb`, `sqs`, `s3`, `nats`, `host`. */
  readonly whose: number | string;
  readonly what: string;
  readonly from: number;
  /** Absent while it lasts, and for a process that is dead. */
  to?: number;
}

const MAX_TOLD = 1_000;

/** What the adversary has done, by kind, and to whom. */
export class Toll {
  readonly counts = new Map<string, number>();
  readonly troubles: Trouble[] = [];
  /** What the host has said that it copes with, as far as that is worth keeping. */
  readonly told: string[] = [];

  count(kind: string, by = 1): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + by);
  }

  /** Notes what the host has said. */
  tell(message: string): void {
    this.count("trouble told by the host");
    if (this.told.length < MAX_TOLD) this.told.push(`${new Date().toISOString()} ${message}`);
  }

  /** Notes the death of a process. */
  killed(name: string, pid: number): void {
    this.count(`kill -9 ${name}`);
    this.troubles.push({ whose: pid, what: `${name} killed`, from: Date.now() });
  }

  /** Notes the beginning of a trouble; gives what ends it. */
  begin(whose: number | string, what: string): () => void {
    const trouble: Trouble = { whose, what, from: Date.now() };
    this.troubles.push(trouble);
    return () => {
      trouble.to ??= Date.now();
    };
  }

  get kills(): number {
    return [...this.counts].reduce(
      (sum, [kind, count]) => sum + (kind.startsWith("kill -9 ") ? count : 0),
      0,
    );
  }
}
