/** What was made for the keys that were asked for more than once. */
export interface Seen<A> {
  /** Made when the key comes for the second time, kept from then on; undefined the first time. */
  get(key: string, make: () => A): A | undefined
}

/**
 * Remembers up to `most` keys, the least recently used first to go: what comes once costs no more than its key.
 * The original's bounds: 128 schemas, each from its second sighting.
 */
export function rememberSeen<A>(most = 128): Seen<A> {
  const seen = new Map<string, { readonly made: A } | undefined>()
  return {
    get(key, make) {
      const again = seen.has(key)
      const known = seen.get(key) ?? (again ? { made: make() } : undefined)
      seen.delete(key)
      seen.set(key, known)
      for (const [oldest] of seen) {
        if (seen.size <= most) break
        seen.delete(oldest)
      }
      return known?.made
    },
  }
}
