import * as z from "zod";
import { ALLOWED_PLACE, MAX_ALLOWED } from "../http/allow-list.ts";

/** The section `outbound` of the operator's file: where requests over HTTP may go (docs/http.md). */
export const outboundConfig = z.strictObject({
  allow: z
    .array(z.string().check(ALLOWED_PLACE))
    .max(MAX_ALLOWED)
    .default([])
    .describe(
      "What may be reached beyond public addresses over https on port 443: origins (`http://127.0.0.1:4100`), hosts (`agents.example.com`) and ranges of addresses (`10.20.0.0/16`).",
    ),
});
