import { InputError } from '../../errors.ts'
import { type Conditions, type ConditionValues, conditionValues } from './conditions.ts'
import type { Prefix } from './prefix.ts'
import type { ConditionerWeights } from './weights.ts'

/**
 * The two prefixes of classifier-free guidance: what is said and how, and the same phonemes with all else left to the
 * learned vectors. `negative` takes the place of these: the voice is led away from it ("negative prompting"); like
 * `conditions` it has defaults for what it leaves out.
 */
export function guidedPrefixes(
  weights: readonly ConditionerWeights[],
  hidden: number,
  phonemes: ArrayLike<number>,
  conditions: Conditions = {},
  negative?: Conditions,
): { readonly conditional: Prefix; readonly unconditional: Prefix } {
  return {
    conditional: prefixRows(weights, hidden, phonemes, conditionValues(conditions)),
    unconditional: prefixRows(weights, hidden, phonemes, negative ? conditionValues(negative) : {}),
  }
}

/**
 * Zonos' prefix conditioner up to its projection, the rows [L, hidden] in the order of the checkpoint's conditioners:
 * one for each phoneme id and one for each other conditioner, its learned vector where `values` has none for it.
 * InputError for a phoneme that is none, a value out of the conditioner's range, and one that must not be left out.
 *
 * The host computes these: they are little work, and Fourier phases of 80 rad need a better sine than WGSL promises.
 */
export function prefixRows(
  weights: readonly ConditionerWeights[],
  hidden: number,
  phonemes: ArrayLike<number>,
  values: ConditionValues,
): Prefix {
  const tokens = weights.flatMap((w) =>
    w.config.kind === 'phonemes'
      ? Array.from(phonemes, (id) => rowOf(w, 'phonemes', id, hidden))
      : [token(w, values[w.config.name] ?? undefined, hidden)],
  )
  const rows = new Float32Array(tokens.length * hidden)
  for (const [i, row] of tokens.entries()) rows.set(row, i * hidden)
  return { rows }
}

function token(w: ConditionerWeights, value: ArrayLike<number> | undefined, hidden: number): ArrayLike<number> {
  const { config, unconditional } = w
  const { name } = config
  if (value === undefined) {
    if (unconditional) return unconditional.data
    throw new InputError(`conditioning: ${name} is left out, expected a value: this model has learned nothing for that`)
  }
  switch (config.kind) {
    case 'passthrough':
      return projected(w, expectLength(name, value, config.width), hidden)
    case 'fourier':
      return waves(w, expectLength(name, value, config.width), config, hidden)
    case 'integer':
      return rowOf(w, name, inRange(name, expectLength(name, value, 1)[0]!, config) - config.min, hidden)
    case 'phonemes':
      throw new TypeError('phonemes are not one token')
  }
}

/** W x + b */
function projected({ weight, bias }: ConditionerWeights, x: ArrayLike<number>, hidden: number): Float64Array {
  return Float64Array.from({ length: hidden }, (_, o) => dot(weight.data, o, x) + (bias?.data[o] ?? 0))
}

/** cos(2π W u) | sin(2π W u) with u = (x - min) / (max - min): random Fourier features (Tancik et al. 2020). */
function waves(
  { weight, config }: ConditionerWeights,
  x: ArrayLike<number>,
  range: Range,
  hidden: number,
): Float64Array {
  const u = Array.from(x, (v) => (inRange(config.name, v, range) - range.min) / (range.max - range.min))
  const token = new Float64Array(hidden)
  for (let i = 0; i < hidden / 2; i++) {
    const phase = 2 * Math.PI * dot(weight.data, i, u)
    token[i] = Math.cos(phase)
    token[hidden / 2 + i] = Math.sin(phase)
  }
  return token
}

/** Row o of w [., x.length] times x, in double. */
function dot(w: Float32Array, o: number, x: ArrayLike<number>): number {
  let sum = 0
  for (let i = 0; i < x.length; i++) sum += w[o * x.length + i]! * x[i]!
  return sum
}

function rowOf({ weight }: ConditionerWeights, name: string, row: number, hidden: number): Float32Array {
  const rows = weight.data.length / hidden
  if (!(Number.isInteger(row) && row >= 0 && row < rows))
    throw new InputError(`conditioning: ${name} has ${row}, expected an integer below ${rows}`)
  return weight.data.subarray(row * hidden, (row + 1) * hidden)
}

interface Range {
  readonly min: number
  readonly max: number
}

/** Upstream extrapolates, to sounds that no voice was trained on. A bound that was rounded to f32 is still in range. */
function inRange(name: string, value: number, { min, max }: Range): number {
  const rounded = Math.fround(value)
  if (rounded >= Math.fround(min) && rounded <= Math.fround(max)) return value
  throw new InputError(`conditioning: ${name} is ${value}, expected ${min} to ${max}`)
}

function expectLength(name: string, value: ArrayLike<number>, width: number): ArrayLike<number> {
  if (value.length === width) return value
  throw new InputError(`conditioning: ${name} has ${value.length} numbers, expected ${width}`)
}
