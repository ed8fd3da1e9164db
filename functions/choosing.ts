import type { Choosing } from "../shared/policy/choosing/choosing.ts";
import type { OutcomeBook } from "../shared/policy/choosing/outcomes.ts";
import type { Wiring } from "./wiring.ts";

/** Chooses who gets what agents hand on; once per sandbox, and loaded when it is needed. */
export function choosingOf(wiring: Wiring): () => Promise<Choosing> {
  return once(async () =>
    (await import("../shared/policy/choosing/dynamodb-choosing.ts")).dynamoChoosing(wiring),
  );
}

/** Remembers how what agents have handed on has come out; for whoever does not choose. */
export function outcomesOf({ access, now, timing: { scale } }: Wiring): () => Promise<OutcomeBook> {
  return once(async () => {
    const [{ dynamoItems }, { OutcomeBook, outcomes }] = await Promise.all([
      import("../shared/policy/choosing/dynamodb-items.ts"),
      import("../shared/policy/choosing/outcomes.ts"),
    ]);
    return new OutcomeBook({ store: dynamoItems(access, "outcomes", outcomes), now, scale });
  });
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
