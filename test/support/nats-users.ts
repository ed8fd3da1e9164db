import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createAccount,
  createOperator,
  createUser,
  encodeAccount,
  encodeOperator,
  encodeUser,
  fmtCreds,
} from "@nats-io/jwt";
import { startNats, type TestNats } from "./nats-server.ts";

/** A nats-server with a configuration of its own. */
export interface ConfiguredNats extends TestNats {
  /** Starts it again with another configuration. */
  reconfigure(config: object): Promise<void>;
}

/** Starts a nats-server with this configuration (JSON is one of the forms that the server reads). */
export async function startConfiguredNats(config: object): Promise<ConfiguredNats> {
  const dir = await mkdtemp(join(tmpdir(), "sluice-nats-config-"));
  const file = join(dir, "nats.json");
  // What only the command line says is forgotten when the file is read again.
  const write = (of: object) => writeFile(file, JSON.stringify(of));
  await write(config);
  const server = await startNats(["-c", file]);
  return {
    ...server,
    get pid() {
      return server.pid;
    },
    async reconfigure(of) {
      await write(of);
      // Without a restart the server forgets what only its command line says, such as JetStream.
      await server.restart();
    },
    async stop() {
      await server.stop();
      await rm(dir, { recursive: true });
    },
  };
}

/** An nkey user: the server is told the public key, the client has the seed. */
export function nkeyUser(): { publicKey: string; seed: string } {
  const user = createUser();
  return { publicKey: user.getPublicKey(), seed: new TextDecoder().decode(user.getSeed()) };
}

/** An operator with one account, besides the one that a server with JetStream must have of its own, and how to make `.creds` for users of it (NATS docs: "JWTs in depth"). */
export async function jwtOperator(): Promise<{ config: object; creds(name: string): Promise<string> }> {
  const operator = createOperator();
  const account = createAccount();
  const system = createAccount();
  const limits = { conn: -1, subs: -1, data: -1, payload: -1 };
  const jwtOf = (name: string, of: typeof account) =>
    encodeAccount(name, of, { limits }, { signer: operator });
  return {
    config: {
      operator: await encodeOperator("test", operator),
      resolver: "MEMORY",
      system_account: system.getPublicKey(),
      resolver_preload: {
        [account.getPublicKey()]: await jwtOf("acme", account),
        [system.getPublicKey()]: await jwtOf("system", system),
      },
    },
    async creds(name) {
      const user = createUser();
      return new TextDecoder().decode(fmtCreds(await encodeUser(name, user, account), user));
    },
  };
}
