import type { Device, Profile } from '../src/device/device.ts'
import { hash } from '../src/kernels/fill_random.ts'
import type { RgbImage } from '../src/media/pixels.ts'
import { createAlbum, type SeenImage } from '../src/models/qwen3_5/album.ts'
import { rowPositions } from '../src/models/qwen3_5/positions.ts'
import { processImage, processorConfig } from '../src/models/qwen3_5/processor.ts'
import { textSession } from '../src/models/qwen3_5/session.ts'
import { visionTower } from '../src/models/qwen3_5/tower.ts'
import type { Bench } from './bench.ts'
import { interleave, origin, type Row, type Timing } from './measure.ts'
import { byKernel, classMs, sumMs, together, typical } from './profile.ts'
import { randomModel, randomTower } from './random_model.ts'
import { shape, visionShape } from './shapes.ts'

/** Sides of the images, in pixels. The published processor reads 224 x 224 at 256 x 256. */
const sides = [224, 448, 896]
/** Tokens of the state and the question behind an image. */
const TEXT = 40
const PROFILES = 3

const published = processorConfig({
  size: { shortest_edge: 65536, longest_edge: 16777216 },
  ...{ patch_size: 16, merge_size: 2, image_mean: [0.5, 0.5, 0.5], image_std: [0.5, 0.5, 0.5] },
})

/**
 * One question about a resized image, to the logits, on random weights of the published shapes; beside it what
 * the host needs to resize it, and the tower alone up to a round trip. No image comes twice.
 */
export const vision: Bench = async (device, { shapes, limit, warmups, runs }, note) => {
  const rounds = { warmups, runs }
  const rows: Row[] = []
  for (const name of shapes) {
    note(`${name}: filling weights`)
    const [c, eyes] = [shape(name), visionShape(name)]
    const [text, visual] = [await randomModel(device, c), await randomTower(device, eyes)]
    const tower = visionTower(device, eyes, published, visual.w)
    const session = textSession(device, c, text.w, text.head, tower)
    const { maxTokens } = await tower.program()
    const album = createAlbum(c.vocabulary, eyes.merge)
    let made = 0
    const see = (image: RgbImage): SeenImage => album.see(processImage(noisy(image, made++), published))

    /** Kernels of the tower, then of the text model. */
    async function answer(image: SeenImage, onProfile?: (profile: Profile) => void): Promise<void> {
      await tower.look([image], { onProfile })
      const ids = [1, ...Array.from({ length: image.tokens }, (_, i) => image.first + i), 2]
      for (let i = 0; i < TEXT; i++) ids.push(hash(made + i) % c.vocabulary)
      const row = { ids, positions: rowPositions(ids, [image], eyes.merge), slots: [ids.length - 1] }
      await session.logits([row], { onProfile })
    }

    for (const side of sides.filter((side) => (side / eyes.patch) ** 2 <= Math.min(limit, maxTokens))) {
      const image: RgbImage = { width: side, height: side, data: new Uint8Array(3 * side * side) }
      const of = `${name}, ${side} x ${side}`
      const given = Array.from({ length: 2 * (warmups + runs) }, () => see(image)) // the GPU need not wait for the host
      const pictures = Array.from({ length: warmups + runs }, () => noisy(image, made++))
      const timings: Timing[] = []
      for (const only of [
        { name: `${of}, answer`, run: () => answer(given.pop()!) },
        { name: `${of}, tower`, run: () => looked(device, () => tower.look([given.pop()!])) },
        { name: `${of}, resized`, run: async () => album.see(processImage(pictures.pop()!, published)) },
      ])
        timings.push(...(await interleave([only], rounds)))
      const profiles: Profile[] = []
      for (let i = 0; i < PROFILES; i++) {
        const both: Profile[] = []
        await answer(see(image), (p) => both.push(p))
        profiles.push(together(both))
      }
      const profile = typical(profiles)
      const flops = profile.dispatches.reduce((n, d) => n + d.flops, 0)
      const { patches, tokens } = countsOf(see(image))
      rows.push({
        ...timings[0]!,
        ...{ patches, tokens, text: TEXT },
        dispatches: profile.dispatches.length,
        submits: profile.submits,
        encodeMs: profile.encodeMs,
        ...classMs(profile),
        kernelsMs: sumMs(profile.dispatches),
        tflopsPerSecond: flops / timings[0]!.medianMs / 1e9,
        pipelines: device.memory.pipelines,
        peakBytes: device.memory.keptBytes + device.memory.slotBytes,
        kernels: byKernel(profile),
      })
      rows.push(...timings.slice(1))
      for (const { case: what, medianMs } of timings) note(`${what}: ${medianMs.toFixed(2)} ms`)
    }
    session.dispose()
    tower.dispose()
    visual.release()
    text.release()
  }
  return { bench: 'vision', ...origin(device), checkpoint: 'random weights', ...rounds, rows }
}

const countsOf = ({ rows, columns, tokens }: SeenImage) => ({ patches: rows * columns, tokens })

/** Another image each time: the tokens of one that is there are not made again. */
function noisy({ width, height, data }: RgbImage, seed: number): RgbImage {
  const noise = data.map((v, i) => (i % 64 === 0 ? hash(seed + i) & 255 : v))
  return { width, height, data: noise }
}

/** A run that nobody reads, to its end. */
async function looked(device: Device, run: () => Promise<void>): Promise<void> {
  await run()
  await device.flush()
}
