import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Processes by the name of what they run. */
export type Running = readonly { readonly name: string; readonly pids: readonly number[] }[];

/** Positions in a line of `/proc/net/tcp` (proc_net_tcp(5)). */
const LOCAL = 1;
const REMOTE = 2;
const INODE = 9;

/** The process at the other end of a connection on this machine: by its socket's inode, among its open files. */
export function callerOf(
  connection: { readonly remotePort: number; readonly localPort: number },
  running: Running,
): { name: string; pid: number } | undefined {
  const inode = inodeOf(connection.remotePort, connection.localPort);
  if (inode === undefined) return undefined;
  for (const { name, pids } of running)
    for (const pid of pids) if (openFiles(pid).includes(`socket:[${inode}]`)) return { name, pid };
  return undefined;
}

function inodeOf(clientPort: number, serverPort: number): string | undefined {
  const client = `:${hex(clientPort)}`;
  const server = `:${hex(serverPort)}`;
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"])
    for (const line of readFileSync(table, "utf8").split("\n")) {
      const fields = line.trim().split(/\s+/);
      if (fields[LOCAL]?.endsWith(client) && fields[REMOTE]?.endsWith(server)) return fields[INODE];
    }
  return undefined;
}

function hex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, "0");
}

function openFiles(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => linkOf(`/proc/${pid}/fd/${fd}`) ?? []);
  } catch {
    return []; // it is gone
  }
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined; // closed meanwhile
  }
}
