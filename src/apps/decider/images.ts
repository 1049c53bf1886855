import { serial } from '../../device/serial.ts'
import { InputError } from '../../errors.ts'
import { readDataUrl } from '../../media/data_url.ts'
import { type ImageInput, readImage } from '../../media/image.ts'
import { createAlbum, type SeenImage } from '../../models/qwen3_5/album.ts'
import type { VisionConfig } from '../../models/qwen3_5/config.ts'
import { positionsFrom, rowPositions } from '../../models/qwen3_5/positions.ts'
import { type ProcessorConfig, processImage } from '../../models/qwen3_5/processor.ts'
import type { Positions } from '../../models/qwen3_5/rope.ts'
import type { Tower } from '../../models/qwen3_5/tower.ts'
import type { Tokenizer } from '../../text/tokenizer.ts'
import type { DeciderConfig } from './config.ts'
import { LETTERS } from './labels.ts'
import type { Context } from './prompt.ts'
import type { Sheet } from './reader.ts'
import type { Row, Scorer } from './scorer.ts'

/** What config.json and preprocessor_config.json say about images. */
export interface Vision {
  readonly config: VisionConfig
  readonly processor: ProcessorConfig
}

export interface ImageOptions {
  /** Shown before the state; of a model that sees. */
  readonly image?: ImageInput | undefined
  /** Reads the image at no more pixels than these, where the model would read it at more. */
  readonly maxPixels?: number | undefined
}

/** The image that a row of data names. Throws InputError for what it does not open. */
export type ImageOf = (where: string) => ImageInput

/** Opens images inside the data, as data URLs. */
export const inlineImage: ImageOf = readDataUrl

/** Images on their way into rows. Computes nothing on a device. */
export interface Eyes {
  /** Undefined without an image. Throws InputError for one that cannot be read; the signal's reason. */
  see(options: ImageOptions & { readonly signal?: AbortSignal | undefined }): Promise<SeenImage | undefined>
  /** The row with the image in front; `wide`: one of its questions has more options than letters. */
  before(row: Row, image: SeenImage, wide: boolean): Row
}

/** `vocabulary`: ids from there on are free for the tokens of images. */
export function createEyes(tokenizer: Tokenizer, { config, processor }: Vision, vocabulary: number): Eyes {
  const album = createAlbum(vocabulary, config.merge)
  return {
    async see({ image, maxPixels = processor.maxPixels, signal }) {
      if (image === undefined) return undefined
      const least = (processor.patch * processor.merge) ** 2
      if (!(Number.isSafeInteger(maxPixels) && maxPixels >= least))
        throw new InputError(`maxPixels: has ${maxPixels}, expected an integer from ${least}`)
      return album.see(processImage(await readImage(image, signal), processor, maxPixels))
    },
    before(row, image, wide) {
      const { ids, slots } = wide ? row : encodedWhole(tokenizer, row)
      const tokens = Array.from({ length: image.tokens }, (_, i) => image.first + i)
      const front = [config.visionStart, ...tokens, config.visionEnd]
      return { ids: [...front, ...ids], slots: slots.map((slot) => slot + front.length), images: [image] }
    },
  }
}

/** A sheet's row about a state and an image. Throws InputError for a layout that models which see were not trained on. */
export function pictured(
  sheet: Sheet,
  context: Context,
  image: SeenImage,
  { eyes, config }: { readonly eyes: Eyes; readonly config: Pick<DeciderConfig, 'layout'> },
): Row {
  if (sheet.order === 'schema_first' || config.layout === 'chat')
    throw new InputError(
      'image: models that see read the plain layout, the state first; leave layout out',
      'unsupported',
    )
  const wide = sheet.questions.some(({ names }) => names.length > LETTERS.length)
  return eyes.before(sheet.about(context), image, wide)
}

/** For a model that does not see. */
export const noEyes: Eyes = {
  async see({ image }) {
    if (image === undefined) return undefined
    throw new InputError('image: the model reads text only; use a Decider whose config has vision: true', 'unsupported')
  },
  before: (row) => row,
}

/**
 * The row as models that see were trained on it: its text encoded as a whole, where pieces may merge, with the slots
 * found again, the last ones that look like slots, for a state may quote some.
 */
function encodedWhole(tokenizer: Tokenizer, row: Row): Row {
  const ids = tokenizer.encode(tokenizer.decode(row.ids))
  const [open, colon, answer] = [' (', ':', 'Answer'].map((text) => tokenizer.encode(text).at(-1)!)
  const isSlot = (i: number): boolean =>
    ids[i] === open && ids[i - 1] === colon && ids.slice(Math.max(0, i - 5), i).includes(answer!)
  const found = ids.flatMap((_, i) => (isSlot(i) ? [i] : []))
  if (found.length >= row.slots.length) return { ids, slots: found.slice(found.length - row.slots.length) }
  throw new InputError(
    `image: the row has ${found.length} answer slots, expected ${row.slots.length}; its options end so that 'Answer: (' ` +
      'is no longer a token of its own',
  )
}

/** Rows whose images take more tokens than these are scored in several turns, for the device keeps a turn's. */
const TURN_TOKENS = 8192

/** Scores rows with images: makes the tokens of each image once, and says where in its row a token stands. */
export function imageScorer(inner: Scorer, tower: Pick<Tower, 'look'>, merge: number): Scorer {
  const queue = serial() // the tokens stay until the rows are read
  return {
    score: (rows, options = {}) =>
      queue(async () => {
        const logits: Float32Array[][] = []
        for (const turn of turnsOf(rows)) {
          const images = turn.flatMap(({ images }) => images ?? [])
          if (images.length > 0) await tower.look(images, options)
          const placed = turn.map((row) =>
            row.images ? { ...row, positions: rowPositions(row.ids, row.images, merge) } : row,
          )
          for (const slots of await inner.score(placed, options)) logits.push([...slots])
        }
        return logits
      }, options.signal),
  }
}

function turnsOf(rows: readonly Row[]): Row[][] {
  const turns: Row[][] = [[]]
  let seen = new Map<number, number>() // tokens of the images of a turn, by their first ids
  for (const row of rows) {
    const own = (row.images ?? []).map(({ first, tokens }) => [first, tokens] as const)
    const together = new Map([...seen, ...own])
    const tokens = [...together.values()].reduce((sum, n) => sum + n, 0)
    if (tokens > TURN_TOKENS && turns.at(-1)!.length > 0) {
      turns.push([])
      seen = new Map(own)
    } else seen = together
    turns.at(-1)!.push(row)
  }
  return turns
}

/** Tokens of a row from `begin` on, up to `end`, and where they stand. */
export function partOf({ ids, positions }: Pick<Row, 'ids' | 'positions'>, begin: number, end?: number) {
  const part: { ids: readonly number[]; positions?: Positions } = { ids: ids.slice(begin, end) }
  return positions ? { ...part, positions: positionsFrom(positions, begin, end) } : part
}
