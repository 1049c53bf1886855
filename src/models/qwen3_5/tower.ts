import type { Device, Profile, Program, Traced } from '../../device/device.ts'
import { encode } from '../../device/formats.ts'
import { recordedProgram } from '../../device/recorded.ts'
import { serial } from '../../device/serial.ts'
import { InputError } from '../../errors.ts'
import { type Segment, segmentTables } from '../../graph/segments.ts'
import { variantProbes } from '../../kernels/lib/probes.ts'
import type { SeenImage } from './album.ts'
import type { VisionConfig } from './config.ts'
import { type PatchGrid, type ProcessorConfig, writePatches } from './processor.ts'
import type { ImageRows } from './session.ts'
import { visionGraph } from './vision.ts'
import { patchTables } from './vision_tables.ts'
import { stillPatch, type VisionWeights } from './vision_weights.ts'

export interface LookOptions {
  readonly signal?: AbortSignal | undefined
  readonly onProfile?: ((profile: Profile) => void) | undefined
}

/** A loaded vision tower on a device, and the image tokens that it made last. */
export interface Tower extends ImageRows {
  /**
   * Makes the tokens of these images, each once, unless all of them are there; those of other images go.
   * InputError for an image of more patches than a run takes.
   */
  look(images: readonly SeenImage[], options?: LookOptions): Promise<void>
  /** Values of every step of a run over these images, for debugging; makes no tokens. */
  trace(images: readonly SeenImage[]): Promise<Traced[]>
  program(): Promise<Program>
  dispose(): void
}

/** An image and the row of its first token. */
interface Placed {
  readonly image: SeenImage
  readonly row: number
}

/** Call when the weights have arrived. */
export function visionTower(
  device: Device,
  c: VisionConfig,
  processor: Pick<ProcessorConfig, 'normalised'>,
  w: VisionWeights,
): Tower {
  const { operand, cache } = device.target
  const patch = device.keep('visual.patch', [c.hidden, 3 * c.patch ** 2], operand)
  device.write(patch, encode(stillPatch(w.patch, c), operand))
  const kv = device.keep('visual.kv', ['*', 2 * c.hidden], cache, 1)
  const features = device.keep('visual.features', ['*', c.out], 'f32', 1)
  const recorded = recordedProgram(device, (target) => visionGraph(target, c, w, { patch, kv, features }), {
    probes: variantProbes,
  })
  const value = operand === 'f16' ? new Uint16Array(encode(processor.normalised, 'f16').buffer) : processor.normalised
  const queue = serial()
  let there: readonly Placed[] = []

  /** One after another, with room for all. */
  function place(images: readonly SeenImage[]): Placed[] {
    let tokens = 0
    const placed = images.map((image) => {
      const row = tokens
      tokens += image.tokens
      return { image, row }
    })
    device.grow(features, tokens)
    return placed
  }

  /** Inputs and counts of a run, for which there is room then. */
  function prepared(placed: readonly Placed[]) {
    const images = placed.map(({ image }) => image)
    let patches = 0
    const segments = images.map((image): Segment => {
      const kvStart = patches
      patches += patchesIn(image)
      return { length: patchesIn(image), from: 0, to: 0, prefixStart: 0, prefixLength: 0, kvStart, kvBefore: 0 }
    })
    device.grow(kv, patches)
    const rows = placed.flatMap(({ image, row }) => Array.from({ length: image.tokens }, (_, i) => row + i))
    const { counts, ...tables } = segmentTables(segments, rows.length)
    const inputs = { patches: pixels(images), ...patchTables(images, c), ...tables, rows: Uint32Array.from(rows) }
    return [inputs, counts] as const
  }

  /** In the format of the graph's input. */
  function pixels(images: readonly SeenImage[]): Float32Array | Uint8Array {
    const width = 3 * c.patch ** 2
    const values = width * images.reduce((n, image) => n + patchesIn(image), 0)
    const all = value instanceof Float32Array ? new Float32Array(values) : new Uint16Array(values)
    let at = 0
    for (const image of images) {
      const end = at + width * patchesIn(image)
      writePatches(image, c, value, all.subarray(at, end))
      at = end
    }
    return all instanceof Float32Array ? all : new Uint8Array(all.buffer)
  }

  return {
    features,
    rowOf(id) {
      const found = there.find(({ image }) => id >= image.first && id < image.first + image.tokens)
      return found && found.row + id - found.image.first
    },
    look: (images, options = {}) =>
      queue(async () => {
        const wanted = [...new Map(images.map((image) => [image.first, image])).values()]
        if (wanted.every(({ first }) => there.some(({ image }) => image.first === first))) return
        const { maxTokens } = await recorded.program()
        there = []
        const placed = place(wanted)
        for (const images of packed(placed, maxTokens))
          await recorded.run(...prepared(images), { ...options, read: false })
        there = placed
      }, options.signal),
    trace: (images) =>
      queue(async () => {
        there = []
        return (await recorded.program()).trace(...prepared(place(images)))
      }),
    program: recorded.program,
    dispose() {
      for (const t of [patch, kv, features]) device.release(t)
    },
  }
}

const patchesIn = ({ rows, columns }: PatchGrid): number => rows * columns

/** In runs of at most `most` patches, in order. */
function packed(images: readonly Placed[], most: number): Placed[][] {
  const runs: Placed[][] = []
  let room = 0
  for (const placed of images) {
    const { width, height } = placed.image.pixels
    const patches = patchesIn(placed.image)
    if (patches > most)
      throw new InputError(
        `image: is read at ${width} x ${height} pixels in ${patches} patches, the device takes ${most} at once; ` +
          `set maxPixels to ${(most / patches) * width * height} or less`,
        'too_long',
      )
    if (patches > room) {
      runs.push([])
      room = most
    }
    room -= patches
    runs.at(-1)!.push(placed)
  }
  return runs
}
