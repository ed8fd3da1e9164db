/**
 * Draws one by weight: each comes up as often as its share of all weights. One without weight never does, unless all
 * are without: then it is the first.
 *
 * @param candidates at least one, in an order that does not depend on chance; weights from 0 on
 * @param random a number from 0 to below 1
 * @throws RangeError when there is no candidate
 */
export function draw<T extends { readonly weight: number }>(candidates: readonly T[], random: number): T {
  const [first] = candidates;
  if (first === undefined) throw new RangeError("a draw: expected at least one candidate, got none");
  const weighty = candidates.filter(({ weight }) => weight > 0);
  const total = weighty.reduce((sum, { weight }) => sum + weight, 0);
  let left = random * total;
  for (const candidate of weighty) {
    left -= candidate.weight;
    if (left < 0) return candidate;
  }
  // Sums of fractions are not exact: what is left over is the last one's.
  return weighty.at(-1) ?? first;
}
