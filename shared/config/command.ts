import * as z from "zod";
import { policyFields } from "./policy.ts";

/** The section `command` of `agents.yaml`: what the command `sluice` may do for this deployment. Only it reads this. */
export const commandConfig = z.strictObject({
  delegateTargets: policyFields.delegateTargets.describe(
    "Whom `sluice ask` may give tasks outside of the deployment without a person's word for each: [command.md](command.md#asking-outside-of-the-deployment). Without one a person must confirm every such task.",
  ),
});
