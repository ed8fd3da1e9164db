import { REGION } from "./intrinsics.ts";

/** The stand-ins take any key; the SDK wants one. */
export const KEYS = { accessKeyId: "local", secretAccessKey: "local" };

/** The settings of an AWS client that talks to a stand-in on this machine. */
export function awsSettings(endpoint: string) {
  return { endpoint, region: REGION, credentials: KEYS };
}
