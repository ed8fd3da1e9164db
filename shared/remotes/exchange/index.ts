/** Speaking with remote agents over A2A (docs/remotes.md, how a remote agent is asked). */
export { RemoteError, type RemoteErrorCode } from "./errors.ts";
export { openExchange } from "./exchange.ts";
export { isRemoteId } from "./ids.ts";
export { remoteFetch } from "./remote-fetch.ts";
export type {
  Canceled,
  Exchange,
  ExchangeLimits,
  ExchangeOptions,
  ExchangeTrace,
  ObservedData,
  Outgoing,
  Reply,
  Rest,
  Seen,
  SeenArtifact,
  Started,
} from "./types.ts";
