import { createHash } from 'node:crypto'
import type { Device } from '../src/device/device.ts'
import type { Tensor } from '../src/graph/tensor.ts'
import { type TextConfig, textConfig } from '../src/models/qwen3_5/config.ts'
import { canonicalName } from '../src/models/qwen3_5/names.ts'
import { type Session, textSession } from '../src/models/qwen3_5/session.ts'
import { textWeights } from '../src/models/qwen3_5/weights.ts'
import { Weights } from '../src/weights/load.ts'
import { openCheckpoint } from '../src/weights/safetensors.ts'
import { openSource, readJson } from '../src/weights/source.ts'
import { filled } from '../src/device/fill.ts'

export interface Identity {
  readonly name: string
  readonly revision: string | null
  /** SHA-256 of every file that holds weights. */
  readonly sha256: Readonly<Record<string, string>>
}

/** Which weights these are. The revision is that of an `hf:` name, or what the caller knows. */
export async function identify(model: string, revision?: string): Promise<Identity> {
  const source = openSource(model)
  const checkpoint = await openCheckpoint(source)
  const files = [...new Set([...checkpoint.tensors.values()].map(({ file }) => file))].sort()
  const sha256: Record<string, string> = {}
  for (const file of files) {
    const hash = createHash('sha256')
    const size = (await source.size(file))!
    for (let at = 0; at < size; at += CHUNK_BYTES)
      hash.update(await source.read(file, at, Math.min(size, at + CHUNK_BYTES)))
    sha256[file] = hash.digest('hex')
  }
  return { name: source.name, revision: revision ?? /@(.+)$/.exec(model)?.[1] ?? null, sha256 }
}
const CHUNK_BYTES = 8 * 2 ** 20

/** A session over a checkpoint with some rows of its LM head, without an app above it. */
export async function loadSession(
  model: string,
  device: Device,
  rows: (c: TextConfig) => readonly number[],
  changed = (c: TextConfig): TextConfig => c,
): Promise<Session> {
  const source = openSource(model)
  const c = changed(textConfig(await readJson(source, 'config.json')))
  const weights = new Weights(await openCheckpoint(source), device, {
    rename: canonicalName,
    format: (stored) => (device.target.operand === 'f16' ? 'f16' : stored),
  })
  weights.ignore((name) => name.startsWith('visual.'))
  const text = textWeights(weights, c)
  await weights.stream()
  const ids = rows(c)
  const head: Tensor = device.keep('head', [ids.length, c.hidden], text.head.format)
  device.write(head, filled(await text.head.read(ids)))
  await device.flush()
  const session = textSession(device, c, text, head)
  return {
    ...session,
    dispose() {
      session.dispose()
      device.release(head)
      weights.release()
    },
  }
}
