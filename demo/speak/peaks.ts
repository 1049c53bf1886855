/** The loudest sample of each of `bars` equal parts. */
export function peaks(parts: readonly Float32Array[], bars: number): Float32Array {
  const total = parts.reduce((n, part) => n + part.length, 0)
  const found = new Float32Array(bars)
  let at = 0
  for (const part of parts) {
    for (const sample of part) {
      const bar = Math.floor((at++ * bars) / total)
      found[bar] = Math.max(found[bar]!, Math.abs(sample))
    }
  }
  return found
}
