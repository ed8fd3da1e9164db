export * from "./depth.ts";
export * from "./json.ts";
export * from "./sender.ts";
