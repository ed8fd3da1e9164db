import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";

/** What Node.js checks a certificate for when it is told no name. */
const NAMELESS = "localhost";

/**
 * How a server shows who it is. By a server's address nats.js tells Node.js no name, and its certificate would be asked
 * for `localhost`: it has to be for one of the addresses that the deployment names.
 *
 * @param servers URLs as in {@link NatsSettings}
 */
export function serverIdentity(servers: readonly string[]): {
  checkServerIdentity?: (name: string, certificate: PeerCertificate) => Error | undefined;
} {
  const hosts = servers.map((url) => new URL(url).hostname.replace(/^\[(.*)\]$/, "$1"));
  const named = hosts.filter((host) => isIP(host) !== 0 || host === NAMELESS);
  if (named.every((host) => host === NAMELESS)) return {};
  return {
    checkServerIdentity: (name, certificate) => {
      if (name !== NAMELESS) return checkServerIdentity(name, certificate);
      const faults = named.map((host) => checkServerIdentity(host, certificate));
      return faults.includes(undefined) ? undefined : faults[0];
    },
  };
}
