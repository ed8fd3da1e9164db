import { HostError } from "./errors.ts";

/** Puts a nats-server program at `path`. */
export async function fetchNatsServer(path: string, progress: (message: string) => void): Promise<void> {
  progress(`no nats-server found; fetching one to ${path}`);
  throw new HostError("nats_not_found", "not yet");
}
