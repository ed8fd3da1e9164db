import { setTimeout as wait } from "node:timers/promises";
import { jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { type ControlKind, controlMessage, taskMessage } from "../../../shared/wire/index.ts";
import type { Peer } from "../../support/peer.ts";
import type { ControlRecord } from "./ledger.ts";
import type { Spec } from "./specs.ts";

const TIMEOUT_MS = 2_000;
const RETRY_MS = 300;

/** A task that the peer has given, and what it has said about it since. */
export interface Given {
  readonly spec: Spec;
  readonly taskId: string;
  readonly to: string;
  readonly subject: string;
  readonly msgId: string;
  readonly body: string;
  /** How often the stream has confirmed the message. */
  published: number;
  readonly controls: ControlRecord[];
}

/** The peer's own books: it publishes until the stream confirms, as docs/wire.md §12 asks of a delegator. */
export class PeerBook {
  readonly given = new Map<string, Given>();
  readonly #peer: Peer;
  readonly #deployment: string;

  constructor(peer: Peer, deployment: string) {
    this.#peer = peer;
    this.#deployment = deployment;
  }

  /** Publishes a task. */
  async give(spec: Spec): Promise<Given> {
    const to = `${this.#deployment}-${spec.agent}`;
    const message = taskMessage({
      from: this.#peer.id,
      to,
      messageId: spec.messageId,
      request: {
        a2a: spec.a2a,
        channelRef: spec.agent,
        skillId: spec.skill,
        delivery: { maxDelegationDepth: 1 },
      },
      createdAt: new Date().toISOString(),
    });
    const taskId = this.#peer.taskId(to, spec.messageId);
    const given: Given = { spec, taskId, to, ...message, published: 0, controls: [] };
    this.given.set(taskId, given);
    await this.#insist(message.subject, message.msgId, message.body);
    given.published++;
    return given;
  }

  /** Publishes the same task once more under another id of its message, perhaps with another body. */
  async giveAgain(given: Given, suffix: string, otherBody = false): Promise<void> {
    const body = otherBody
      ? given.body.replace(/"createdAt":"[^"]*"/, `"createdAt":"${new Date().toISOString()}"`)
      : given.body;
    await this.#insist(given.subject, `${given.msgId}:${suffix}`, body);
    given.published++;
  }

  /** @param again how many copies follow under ids of their own */
  async control(
    given: Given,
    of: {
      kind: ControlKind;
      revision: number;
      a2a?: unknown;
      good?: boolean;
      messageId?: string;
      again?: number;
    },
  ): Promise<void> {
    const { kind, revision, a2a, good = false, again = 0 } = of;
    const { taskId, to } = given;
    const messageId = of.messageId ?? `${taskId}_${kind}_${revision}`;
    const createdAt = new Date().toISOString();
    const message = controlMessage({
      from: this.#peer.id,
      to,
      taskId,
      kind,
      revision,
      messageId,
      a2a,
      createdAt,
    });
    const msgId = of.messageId === undefined ? message.msgId : `${message.msgId}:${of.messageId}`;
    await this.#insist(message.subject, msgId, message.body);
    given.controls.push({ kind, revision, messageId, good });
    for (let n = 1; n <= again; n++) await this.#insist(message.subject, `${msgId}:${n}`, message.body);
  }

  /** Publishes until the stream confirms. */
  async #insist(subject: string, msgId: string, body: string): Promise<void> {
    const { nc } = this.#peer;
    const h = headers();
    for (;;) {
      try {
        const js = jetstream(nc, { timeout: TIMEOUT_MS });
        await js.publish(subject, body, { msgID: msgId, headers: h, timeout: TIMEOUT_MS });
        return;
      } catch (error) {
        if (nc.isClosed()) throw error;
        await wait(RETRY_MS);
      }
    }
  }
}
