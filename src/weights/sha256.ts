import { hasFiles } from './host.ts'

/** A hash of bytes that come piece by piece. */
export interface Hash {
  update(bytes: Uint8Array): void
  /** In hexadecimal; ends the hash. */
  digest(): string
}

/** SHA-256: the host's own where it takes pieces (several times faster); in a page without WebAssembly, which a CSP may forbid. */
export async function sha256(): Promise<Hash> {
  if (hasFiles()) {
    const hash = (await import('node:crypto')).createHash('sha256')
    return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest('hex') }
  }
  const [{ sha256 }, { bytesToHex }] = await Promise.all([
    import('@noble/hashes/sha2.js'),
    import('@noble/hashes/utils.js'),
  ])
  const hash = sha256.create()
  return { update: (bytes) => void hash.update(bytes), digest: () => bytesToHex(hash.digest()) }
}
