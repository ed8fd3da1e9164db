export * from "./acks.ts";
export * from "./connect.ts";
export * from "./delivery.ts";
export * from "./errors.ts";
export * from "./intake.ts";
export * from "./objects.ts";
export * from "./stream-reads.ts";
export * from "./streams.ts";
