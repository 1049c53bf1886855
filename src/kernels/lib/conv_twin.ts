import type { Constants, View, Views } from '../../graph/kernel.ts'
import { snake } from './snake.ts'

/**
 * How the rows of the product read x and where their sums lie in y: the constants of shaders/lib/operand_window.wgsl
 * and finish_conv.wgsl. RATE rows stand for each that the run counts; the last Y_MISSING of y are zeros.
 */
export interface Window {
  readonly CHANNELS: number
  readonly STRIDE: number
  readonly DILATION: number
  readonly PADDING: number
  readonly IN: number
  readonly OUT: number
  readonly SHIFT: number
  readonly X_RATE: number
  readonly RATE: number
  readonly EXTRA: number
  readonly Y_RATE: number
  readonly Y_MISSING: number
}

/** Windows that are multiplied together with two rows of weights: eight sums at once are what keeps a CPU busy. */
const WINDOWS = 4

/** Windows of x times the weights, plus bias and residual, through tanh, as they are or through snake. */
export function convTwin(
  { x, w, bias, residual, alpha, y, snaked }: Views,
  constants: Constants,
  count: number,
  onlySnaked: boolean,
): void {
  const c = constants as unknown as Window & { TANH: number; Y_CHANNELS: number }
  const { IN, OUT, Y_CHANNELS } = c
  const rows = count * c.RATE + c.EXTRA
  const values = (count * c.Y_RATE - c.Y_MISSING) * Y_CHANNELS // behind them the views are zeros
  const windows = new Float64Array(WINDOWS * IN)
  const sums = new Float64Array(2 * WINDOWS)

  const finish = (at: number, o: number, sum: number): void => {
    if (at < 0 || at >= values) return
    const channel = o % Y_CHANNELS
    const v = sum + bias![channel]! + (residual ? residual[at]! : 0)
    const value = c.TANH === 1 ? Math.tanh(v) : v
    y![at] = onlySnaked ? snake(value, alpha![channel]!) : value
    if (snaked) snaked[at] = snake(value, alpha![channel]!)
  }

  for (let row = 0; row < rows; row += WINDOWS) {
    for (let i = 0; i < WINDOWS; i++) gather(x!, c, count, row + i, windows, i)
    const own = Math.min(WINDOWS, rows - row)
    for (let o = 0; o < OUT; o += 2) {
      const next = Math.min(o + 1, OUT - 1)
      eightDots(windows, w!, o * IN, next * IN, IN, sums)
      for (let i = 0; i < own; i++) {
        const at = (row + i) * OUT - c.SHIFT
        finish(at + o, o, sums[i]!)
        if (next > o) finish(at + next, next, sums[WINDOWS + i]!)
      }
    }
  }
}

/** Puts the window of one row, tap after tap and zero outside of the signal, among the others as their i-th. */
function gather(x: View, c: Window, count: number, row: number, windows: Float64Array, i: number): void {
  const { CHANNELS, IN } = c
  const length = count * c.X_RATE
  for (let k = 0; k < IN; k += CHANNELS) {
    const at = row * c.STRIDE + (k / CHANNELS) * c.DILATION - c.PADDING
    const there = at >= 0 && at < length
    for (let j = 0; j < CHANNELS && k + j < IN; j++) windows[(k + j) * WINDOWS + i] = there ? x[at * CHANNELS + j]! : 0
  }
}

/** Dot products of four windows, side by side, with two rows of weights. Plain names: engines keep them in registers. */
function eightDots(x: Float64Array, w: View, from: number, next: number, width: number, sums: Float64Array): void {
  let a0 = 0
  let b0 = 0
  let c0 = 0
  let d0 = 0
  let a1 = 0
  let b1 = 0
  let c1 = 0
  let d1 = 0
  for (let k = 0, at = 0; k < width; k++, at += WINDOWS) {
    const w0 = w[from + k]!
    const w1 = w[next + k]!
    const a = x[at]!
    const b = x[at + 1]!
    const c = x[at + 2]!
    const d = x[at + 3]!
    a0 += a * w0
    b0 += b * w0
    c0 += c * w0
    d0 += d * w0
    a1 += a * w1
    b1 += b * w1
    c1 += c * w1
    d1 += d * w1
  }
  sums[0] = a0
  sums[1] = b0
  sums[2] = c0
  sums[3] = d0
  sums[4] = a1
  sums[5] = b1
  sums[6] = c1
  sums[7] = d1
}
