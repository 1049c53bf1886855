import type { DacConfig } from './config.ts'
import { dilations } from './weights.ts'

/** Frames on both sides on which a frame depends. */
export interface Context {
  readonly left: number
  readonly right: number
}

/** Frames [begin, end) are run, of which [from, to) are kept. */
export interface Window {
  readonly begin: number
  readonly end: number
  readonly from: number
  readonly to: number
}

/**
 * Windows of at most `most` frames that keep the frames [from, to) of `frames`. What is kept has all of its context, or
 * begins or ends with the signal itself, so it equals what one run over everything would give.
 */
export function windows(from: number, to: number, frames: number, { left, right }: Context, most: number): Window[] {
  const made: Window[] = []
  for (let at = from; at < to; at = made.at(-1)!.to) {
    const begin = Math.max(0, at - left)
    const end = Math.min(frames, begin + most, to + right)
    made.push({ begin, end, from: at, to: Math.min(to, end === frames ? end : end - right) })
  }
  return made
}

/** Rows of residual units on one side: three convolutions of seven taps, dilated. */
const unitRows = dilations.reduce((rows, dilation) => rows + 3 * dilation, 0)

/** Frames that the samples of one frame depend on: the rows that are read, layer by layer from the last one on. */
export function decoderContext({ hop, decoder: { strides } }: DacConfig): Context {
  let [low, high] = [-3, hop - 1 + 3]
  for (const stride of [...strides].reverse()) {
    const row = (n: number): number => Math.floor((n + Math.ceil(stride / 2)) / stride)
    ;[low, high] = [row(low - unitRows) - 1, row(high + unitRows)]
  }
  return { left: 3 - low, right: high + 3 }
}

/** Frames whose samples the codes of one frame depend on. */
export function encoderContext({ hop, encoder: { strides } }: DacConfig): Context {
  let [low, high] = [-1, 1]
  for (const stride of [...strides].reverse()) {
    const begin = (row: number): number => row * stride - Math.ceil(stride / 2)
    ;[low, high] = [begin(low) - unitRows, begin(high) + 2 * stride - 1 + unitRows]
  }
  return { left: Math.ceil((3 - low) / hop), right: Math.ceil((high + 3 - (hop - 1)) / hop) }
}
