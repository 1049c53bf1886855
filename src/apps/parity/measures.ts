/** Cosine of the angle between two vectors; 1 for the same direction. */
export function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [ab, aa, bb] = [0, 0, 0]
  for (let i = 0; i < a.length; i++) {
    ab += a[i]! * b[i]!
    aa += a[i]! ** 2
    bb += b[i]! ** 2
  }
  return ab / Math.sqrt(aa * bb)
}

/** Infinite for vectors of different lengths, NaN where there is one. */
export function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let most = a.length === b.length ? 0 : Number.POSITIVE_INFINITY
  for (let i = 0; i < Math.min(a.length, b.length); i++) most = Math.max(most, Math.abs(a[i]! - b[i]!))
  return most
}

/** Index of the greatest value; of equal ones the first. */
export function greatest(values: ArrayLike<number>): number {
  let best = 0
  for (let i = 1; i < values.length; i++) if (values[i]! > values[best]!) best = i
  return best
}

/**
 * Scale-invariant signal-to-distortion ratio of an estimate of a signal, in dB (Le Roux et al. 2019): of the signal's
 * share in the estimate, α s with α = <e, s> / |s|², to the rest of it. Infinite for a signal itself.
 */
export function siSdr(estimate: ArrayLike<number>, signal: ArrayLike<number>): number {
  let [es, ss] = [0, 0]
  for (let i = 0; i < signal.length; i++) {
    es += estimate[i]! * signal[i]!
    ss += signal[i]! ** 2
  }
  const alpha = es / ss
  let rest = 0
  for (let i = 0; i < signal.length; i++) rest += (estimate[i]! - alpha * signal[i]!) ** 2
  return 10 * Math.log10((alpha ** 2 * ss) / rest)
}
