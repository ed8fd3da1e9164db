import { dynamoPeers } from "../../cards/dynamodb-peers.ts";
import type { HttpFacts } from "../../cards/peer-facts.ts";
import type { DeploymentConfig } from "../../config/deployment.ts";
import type { RemoteConfig } from "../../config/remotes.ts";
import type { Timing } from "../../config/timing.ts";
import { allowList } from "../../http/index.ts";
import { Breaker } from "../../policy/choosing/breaker.ts";
import { circuit, circuitRules } from "../../policy/choosing/circuit.ts";
import { dynamoItems } from "../../policy/choosing/dynamodb-items.ts";
import type { TableAccess } from "../../tasks/dynamodb-transaction.ts";
import type { Telemetry } from "../../telemetry/index.ts";
import { credentialSources } from "../credentials.ts";
import { type ExchangeTrace, openExchange } from "../exchange/index.ts";
import { openWay } from "../way.ts";
import type { Front } from "./front.ts";
import { termsOf } from "./terms.ts";
import { endOf } from "./trouble.ts";

/** How long a sandbox goes by what it has read of a remote's card, in milliseconds. */
const KNOWN_MS = 60_000;

/** What a function has that hosts remote agents. */
export interface FrontHost {
  readonly deployment: Pick<DeploymentConfig, "remotes" | "outbound">;
  readonly access: Pick<TableAccess, "client" | "table">;
  readonly telemetry: Pick<Telemetry, "info" | "warn" | "count">;
  readonly timing: Pick<Timing, "scale">;
  readonly now: () => number;
}

interface Known {
  readonly until: number;
  readonly facts: Promise<HttpFacts | undefined>;
}

/** The ways to the remote agents of a deployment, as a sandbox keeps them. Nothing is read before it is needed. */
export class Reach {
  readonly #host: FrontHost;
  readonly #breaker: Breaker;
  readonly #known = new Map<string, Known>();

  constructor(host: FrontHost) {
    this.#host = host;
    const { access, now, telemetry, timing } = host;
    const store = dynamoItems(access, "circuit", circuit);
    this.#breaker = new Breaker({ store, now, telemetry, rules: circuitRules(timing.scale) });
  }

  /**
   * The way to one remote agent, for one task.
   *
   * @param name in the operator's file
   */
  front(name: string, trace: ExchangeTrace): Front {
    const { now, timing, telemetry } = this.#host;
    return {
      remote: name,
      now,
      scale: timing.scale,
      warn: (message, fields) => telemetry.warn(message, fields),
      terms: async (skill) => {
        const remote = this.#remote(name);
        return termsOf(skill, remote, await this.#facts(remote));
      },
      ask: async (what, before) => {
        const remote = this.#remote(name);
        const [fetch, facts] = await Promise.all([this.#open(remote), this.#facts(remote)]);
        const exchange = await openExchange({ remote, facts, fetch, trace, before });
        return await this.#breaker.around(name, () => what(exchange), endOf);
      },
    };
  }

  #remote(name: string): RemoteConfig {
    const remote = this.#host.deployment.remotes?.find((of) => of.name === name);
    // Synthesis has seen that it is there (shared/config/front-agents.ts).
    if (remote === undefined) throw new Error(`there is no remote agent ${name} any more`);
    return remote;
  }

  #open(remote: RemoteConfig) {
    const allow = allowList(this.#host.deployment.outbound?.allow ?? []);
    return openWay(remote, { sources: credentialSources(process.env), allow });
  }

  #facts({ name, url }: RemoteConfig): Promise<HttpFacts | undefined> {
    const { now, timing, access } = this.#host;
    const known = this.#known.get(name);
    if (known !== undefined && now() < known.until) return known.facts;
    const facts = dynamoPeers(access)
      .fact("http", name)
      // At another address it is another agent.
      .then((of) => (of?.transport === "http" && of.url === url ? of : undefined));
    this.#known.set(name, { until: now() + KNOWN_MS / timing.scale, facts });
    facts.catch(() => this.#known.delete(name));
    return facts;
  }
}
