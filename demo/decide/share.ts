/** What a link holds: all but an image. */
export interface Shared {
  readonly text: string
  readonly questions: unknown
}

// A link carries its state behind the #, which no server sees: JSON, deflated, in base64url.

export async function toLink(shared: Shared): Promise<string> {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(shared)), new CompressionStream('deflate-raw'))
  const base64 = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
  return `#decide=${base64.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')}`
}

/** The state of a link; undefined where it has none. Rejects for one that was cut. */
export async function fromLink(hash: string): Promise<Shared | undefined> {
  const [, code] = /^#decide=([\w-]+)$/.exec(hash) ?? []
  if (code === undefined) return undefined
  const bytes = Uint8Array.from(atob(code.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0))
  const { text, questions } = JSON.parse(
    new TextDecoder().decode(await through(bytes, new DecompressionStream('deflate-raw'))),
  )
  return { text: String(text), questions }
}

const through = async (bytes: Uint8Array<ArrayBuffer>, stream: CompressionStream | DecompressionStream) =>
  new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer())
