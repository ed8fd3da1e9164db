/** A quota that nobody has used up. */
export const noQuota = { refuses: async () => undefined };
