import { acceptKey } from "../../shared/cards/dynamodb-acceptance.ts";
import type { HttpFacts } from "../../shared/cards/peer-facts.ts";
import type { Stored } from "../../shared/cards/peer-store.ts";
import { nearest } from "../../shared/config/nearest.ts";
import { listed } from "../../shared/policy/listed.ts";
import { confirm } from "../confirm.ts";
import { CliError, EXIT } from "../errors.ts";
import { operatorName } from "../operator.ts";
import { processOutput } from "../output.ts";
import { findPlace, reach } from "../place.ts";
import { repeatPlace } from "../repeat.ts";
import { currentHome } from "../session.ts";
import type { AcceptOptions } from "./command.ts";
import { type OpenPeers, openPeers } from "./open.ts";

/**
 * `peers accept`: an operator takes a key that a remote agent's card is signed with in place of the one before. Which key
 * it is, must be seen: a person at a terminal is shown it and asked, a program names it.
 *
 * @throws CliError `usage` when nothing is to be accepted, or it is another key than the one that was named
 */
export async function accept(name: string, given: AcceptOptions): Promise<number> {
  const out = processOutput(given.json);
  const place = await findPlace(currentHome(given), given.stack);
  using open = openPeers(place);
  const { facts, offered } = await reach(place.label, known(open, name));
  const { key: before } = facts.value.signature;
  const key = keyWanted(name, { before, offered }, given);
  const what = key === undefined ? "any key, or none" : key;
  // Only who names the very key that is taken has seen it; "any key" cannot be named, so that a person is asked.
  const isNamed = key !== undefined && given.key === key;
  if (!isNamed && !(out.interactive && (await confirm(question(name, what, before)))))
    return refusal(out.interactive, key);
  const wanted = { key, at: Date.now(), by: operatorName() };
  const note = await reach(place.label, acceptKey(open.access, facts, wanted));
  if (note === undefined)
    throw new CliError(EXIT.failed, `${name}: what is known of it was changed meanwhile; look at it again`);
  const { at, by } = note;
  out.record({
    remote: name,
    at: new Date(at).toISOString(),
    by,
    before: before ?? null,
    after: key ?? null,
  });
  out.line(`${name}: its next card is taken by ${what}; that ${by} has accepted it is noted`);
  out.line(`have it fetched now: ${repeatPlace("./sluice peers refresh")} ${name}`);
  return EXIT.ok;
}

interface Known {
  readonly facts: Stored<HttpFacts>;
  readonly offered: string | undefined;
}

async function known({ store }: OpenPeers, name: string): Promise<Known> {
  const [all, { value }] = await Promise.all([store.facts("http"), store.ledger("http")]);
  const found = all.get(name);
  if (found?.value.transport === "http") {
    const { offeredKey: offered } = value.standings.find(({ id }) => id === name) ?? {};
    return { facts: { version: found.version, value: found.value }, offered };
  }
  throw noCard(name, { carded: [...all.keys()], asked: value.standings.map(({ id }) => id) });
}

/**
 * Why there is no card whose key could be replaced.
 *
 * @param of.carded the remote agents of which a card is known
 * @param of.asked those of which one was asked for
 */
export function noCard(
  name: string,
  { carded, asked }: { readonly carded: readonly string[]; readonly asked: readonly string[] },
): CliError {
  if (asked.includes(name))
    return new CliError(
      EXIT.usage,
      `${name}: no card of it was had yet, so there is no key to be replaced; ${repeatPlace("./sluice peers")} ${name} tells why`,
    );
  const names = [...new Set([...carded, ...asked])];
  const meant = nearest(name, names);
  const there = meant.length === 0 ? `there are ${listed(names)}` : `did you mean ${meant.join(" or ")}?`;
  return new CliError(EXIT.usage, `no remote agent ${JSON.stringify(name)}; ${there}`);
}

/** The key that is meant; nothing where any is. */
function keyWanted(
  name: string,
  { before, offered }: { readonly before: string | undefined; readonly offered: string | undefined },
  { key, unsigned }: AcceptOptions,
): string | undefined {
  if (unsigned) {
    if (before !== undefined) return undefined;
    throw new CliError(EXIT.usage, `${name}: no key of it is known: whatever it shows is taken already`);
  }
  if (offered === undefined)
    throw new CliError(
      EXIT.usage,
      `${name}: its cards offer no other key${before === undefined ? "" : ` than ${before}; --unsigned takes the next one whoever has signed it`}`,
    );
  if (key === undefined || key === offered) return offered;
  throw new CliError(EXIT.usage, `--key: ${name} offers another key: ${offered}`);
}

function question(name: string, what: string, before: string | undefined): string {
  return `Take the next card of ${name} by ${what}, in place of ${before ?? "none"}?`;
}

function refusal(wasAsked: boolean, key: string | undefined): number {
  if (wasAsked) return EXIT.failed;
  const how = key === undefined ? "a terminal is required" : `without a terminal --key ${key} is required`;
  throw new CliError(EXIT.usage, `who accepts a key must have seen it: ${how}`);
}
