import { errors, type NatsConnection } from "@nats-io/transport-node";
import { type Login, readCredentials, secretOf } from "./credentials.ts";
import { within } from "./deadline.ts";
import { NatsError } from "./errors.ts";
import { connect } from "./transport.ts";

/** Where NATS is and as whom to speak to it. */
export interface NatsSettings {
  /** URLs `nats://HOST:PORT` or `tls://HOST:PORT`, at least one. */
  readonly servers: readonly string[];
  /** `none`, `file:PATH` or `secret:NAME`; see {@link readCredentials}. */
  readonly credentials: string;
  /**
   * The PEM text of the authority that signed the servers' certificates; TLS is then required. One that comes with the
   * credentials counts instead.
   */
  readonly ca?: string | undefined;
  /**
   * The client's name as the server shows it. The inbox prefix is `_INBOX_` and this name, in which a dot divides two
   * parts of the subject.
   */
  readonly name: string;
}

/** How long one server may take to answer when connecting, in milliseconds. */
const CONNECT_MS = 3_000;
/** A sandbox that paused for longer than this may have lost its connection unnoticed, in milliseconds. */
const PAUSE_MS = 5_000;
/** How long a connection may take to prove that it lives, in milliseconds. */
const PROBE_MS = 1_000;
/** Milliseconds between two attempts to reconnect. */
const RECONNECT_MS = 200;

/** The name of a function's client: its inboxes are `_INBOX_sluice-<deployment>.<function>.>` (docs/nats.md). */
export function clientName(deployment: string, functionName: string): string {
  return `sluice-${deployment}.${functionName}`;
}

/**
 * Connects to the first of the servers that answers. The connection reconnects by itself for as long as it is open.
 *
 * Credentials out of a secret may have been replaced since it was read: when they are refused, or its certificates may be,
 * it is read again, and tried once more.
 *
 * Its inboxes start with `_INBOX_<name>` rather than `_INBOX`, so that an operator can allow this client its own
 * replies and nobody else's (NATS docs: "Authorization", private inboxes).
 *
 * @throws NatsError `nats_unreachable`, `nats_refused` or `nats_credentials`
 */
export async function connectNats(settings: NatsSettings): Promise<NatsConnection> {
  const { credentials } = settings;
  const login = await readCredentials(credentials);
  try {
    return await dial(settings, login);
  } catch (error) {
    if (!(error instanceof NatsError) || secretOf(credentials) === undefined) throw error;
    if (error.code !== "nats_refused" && !mayBeOfCertificates(error, login)) throw error;
    const fresh = await readCredentials(credentials, { fresh: true });
    if (error.code !== "nats_refused" && isSame(fresh, login)) throw error;
    return await dial(settings, fresh);
  }
}

/** Whether two have the same certificates. */
function isSame(one: Login, other: Login): boolean {
  return JSON.stringify(one.tls) === JSON.stringify(other.tls);
}

/**
 * Whether it may be the certificates that one side does not take. Of a client's that is refused the client only sees that
 * nothing comes any more (TLS 1.3: the handshake is over by then, as far as it knows).
 */
function mayBeOfCertificates({ cause }: NatsError, { tls }: Login): boolean {
  const isNobodyThere =
    cause instanceof Error && /connection refused|ENOTFOUND|EAI_AGAIN/.test(cause.message);
  return tls !== undefined && !isNobodyThere;
}

async function dial(settings: NatsSettings, login: Login): Promise<NatsConnection> {
  const { tls = {}, ...user } = login;
  const trusted = { ...(settings.ca !== undefined && { ca: settings.ca }), ...tls };
  const secured = Object.keys(trusted).length > 0 || settings.servers.some((url) => url.startsWith("tls://"));
  const identity = secured && (await import("./server-identity.ts")).serverIdentity(settings.servers);
  try {
    return await connect({
      ...user,
      servers: [...settings.servers],
      name: settings.name,
      inboxPrefix: `_INBOX_${settings.name.replaceAll(/[^A-Za-z0-9_.-]/g, "-")}`,
      timeout: CONNECT_MS,
      maxReconnectAttempts: -1,
      reconnectTimeWait: RECONNECT_MS,
      pingInterval: 10_000,
      ...(secured && { tls: { ...trusted, ...identity } }),
    });
  } catch (cause) {
    throw connectError(settings, login, cause);
  }
}

function connectError(settings: NatsSettings, { tls }: Login, cause: unknown): NatsError {
  const servers = settings.servers.join(", ");
  const reason = cause instanceof Error ? cause.message : String(cause);
  if (cause instanceof errors.AuthorizationError || cause instanceof errors.UserAuthenticationExpiredError)
    return new NatsError(
      "nats_refused",
      `NATS at ${servers} refused the credentials (${reason}); check ${whatToCheck(settings)}`,
      { cause },
    );
  const certificates = tls === undefined ? "" : `, and the certificates of ${settings.credentials}`;
  return new NatsError(
    "nats_unreachable",
    `NATS at ${servers} cannot be reached (${reason}); check that it runs and that nats.servers names it${certificates}`,
    { cause },
  );
}

function whatToCheck({ credentials }: NatsSettings): string {
  const secret = secretOf(credentials);
  return secret === undefined ? "the deployment's nats.credentials" : `the secret ${secret}`;
}

/**
 * The one connection of a sandbox, opened when first asked for. Lambda freezes a sandbox between invocations, timers
 * and all, so a connection may be dead without the client knowing: after a pause, or while it reconnects, it must
 * first answer a flush, and is replaced if it does not.
 */
export class NatsLink {
  readonly #settings: () => NatsSettings;
  readonly #now: () => number;
  #connection: NatsConnection | undefined;
  #opening: Promise<NatsConnection> | undefined;
  #lastUse = 0;
  #disconnected = false;
  readonly #listeners = new Set<() => void>();

  /**
   * @param settings asked for when a connection is opened, so that a start does not wait for them
   * @param now the clock, in milliseconds; it only measures pauses
   */
  constructor(settings: () => NatsSettings, now: () => number = Date.now) {
    this.#settings = settings;
    this.#now = now;
  }

  /**
   * The connection, proven to live if there is any doubt.
   *
   * @throws NatsError when there is none to be had
   */
  async get(): Promise<NatsConnection> {
    const current = this.#connection;
    if (current !== undefined && this.#opening === undefined && !this.#doubtful(current)) {
      this.#lastUse = this.#now();
      return current;
    }
    this.#opening ??= this.#renew().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** Whether there is a connection that is not waiting to be restored. */
  get connected(): boolean {
    return this.#connection !== undefined && !this.#connection.isClosed() && !this.#disconnected;
  }

  /** Whether there is none, or one that will not be restored: only {@link get} makes another. */
  get closed(): boolean {
    return this.#connection?.isClosed() ?? true;
  }

  /**
   * Calls back each time that the connection is lost, before it is restored.
   *
   * @returns what ends this
   */
  onDisconnect(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Closes the connection, if there is one; what was published before is sent first. */
  async close(): Promise<void> {
    const connection = await (this.#opening?.catch(() => undefined) ?? this.#connection);
    this.#connection = undefined;
    if (connection === undefined || connection.isClosed()) return;
    await lives(connection);
    await within(connection.close(), PROBE_MS);
  }

  #doubtful(connection: NatsConnection): boolean {
    return connection.isClosed() || this.#disconnected || this.#now() - this.#lastUse > PAUSE_MS;
  }

  async #renew(): Promise<NatsConnection> {
    const current = this.#connection;
    if (current !== undefined) {
      if (await lives(current)) {
        this.#lastUse = this.#now();
        return current;
      }
      this.#connection = undefined;
      void within(current.close(), PROBE_MS);
    }
    const fresh = await connectNats(this.#settings());
    this.#connection = fresh;
    this.#disconnected = false;
    this.#lastUse = this.#now();
    void this.#watch(fresh);
    return fresh;
  }

  async #watch(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (connection !== this.#connection) return;
      if (status.type === "disconnect") {
        this.#disconnected = true;
        for (const listener of this.#listeners) listener();
      }
      if (status.type === "reconnect") this.#disconnected = false;
    }
  }
}

async function lives(connection: NatsConnection): Promise<boolean> {
  if (connection.isClosed()) return false;
  const answered = connection.flush().then(
    () => true,
    () => false,
  );
  return (await within(answered, PROBE_MS)) === true;
}
