/** Nanoseconds in a millisecond. */
export const NS_PER_MS = 1_000_000n;

const RFC_3339 =
  /^(\d{4}-\d{2}-\d{2})T((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,9}))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/;

/**
 * The instant that an RFC 3339 time with up to nine fraction digits names, in nanoseconds since 1970; `null` when it
 * is none. Nanoseconds, because existing peers write and compare them.
 */
export function parseTime(text: string): bigint | null {
  const match = RFC_3339.exec(text);
  if (match === null) return null;
  const [, day = "", clock = "", fraction = "", sign = "+", hours = "0", minutes = "0"] = match;
  const ms = Date.parse(`${day}T${clock}Z`);
  // Date.parse takes 30 February for 1 or 2 March.
  if (Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(day)) return null;
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === "-" ? -1 : 1);
  return BigInt(ms - offsetMs) * NS_PER_MS + BigInt(fraction.padEnd(9, "0"));
}
