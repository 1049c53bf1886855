import type { RequestError } from '../../errors.ts'
import { refuse } from './refusal.ts'

/** The largest requests that a server takes. */
export interface Limits {
  /** Rows of a request. */
  readonly maxRows: number
  readonly maxRowTokens: number
  readonly maxRequestTokens: number
  /** Rows that may wait. */
  readonly maxQueueRows: number
  /** Pixels of an image as it is sent. */
  readonly maxImagePixels: number
  /** Images that may wait to be decoded, and as many to be scored: megabytes each. */
  readonly maxQueueImages: number
}

/** The original's, which takes no images. */
export const LIMITS: Limits = {
  maxRows: 1024,
  maxRowTokens: 36_864,
  maxRequestTokens: 1_048_576,
  maxQueueRows: 4096,
  maxImagePixels: 2 ** 24, // decoding and resizing more takes most of a second
  maxQueueImages: 64,
}

/** Throws RequestError 413 for a request over a limit; `lengths` are the tokens of its rows. */
export function checkSize(lengths: readonly number[], limits: Limits): void {
  const { maxRows, maxRowTokens, maxRequestTokens } = limits
  const rows = lengths.length
  if (rows > maxRows)
    throw refuse(
      413,
      `too many questions: the request expands to ${rows} scoring rows, the limit is ${maxRows} (DECIDER_MAX_ROWS)`,
    )
  const longest = Math.max(0, ...lengths)
  if (longest > maxRowTokens)
    throw refuse(
      413,
      `too many tokens: one row has ${longest} tokens, the limit is ${maxRowTokens} per row (DECIDER_MAX_ROW_TOKENS)`,
    )
  const tokens = lengths.reduce((sum, length) => sum + length, 0)
  if (tokens > maxRequestTokens)
    throw refuse(
      413,
      `too many tokens: the request has ${tokens} tokens over ${rows} rows, the limit is ${maxRequestTokens} ` +
        '(DECIDER_MAX_REQUEST_TOKENS)',
    )
}

/** Throws RequestError 413 for an image of more pixels than the limit; `size`: of its file's header, if that can be read. */
export function checkPixels(size: { width: number; height: number } | undefined, { maxImagePixels }: Limits): void {
  if (!size || size.width * size.height <= maxImagePixels) return
  const { width, height } = size
  throw refuse(
    413,
    `too many pixels: the image has ${width} x ${height}, the limit is ${maxImagePixels} (maxImagePixels)`,
  )
}

/** The RequestError 503 of a server on which `rows` are waiting. */
export const overloaded = (rows: number, { maxQueueRows }: Limits): RequestError =>
  refuse(503, `server busy: ${rows} rows queued, the limit is ${maxQueueRows} (DECIDER_MAX_QUEUE_ROWS); retry later`)

/** Likewise where `images` are waiting. */
export const fullOfImages = (images: number, { maxQueueImages }: Limits): RequestError =>
  refuse(503, `server busy: ${images} images queued, the limit is ${maxQueueImages} (maxQueueImages); retry later`)
