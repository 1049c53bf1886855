import { InputError } from '../../errors.ts'
import { type Conditions, type ConditionValues, conditionValues } from './conditions.ts'
import type { ConditionerConfig } from './config.ts'
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
  checkConditions(
    weights.map(({ config }) => config),
    values,
  )
  const tokens = weights.flatMap((w) =>
    w.config.kind === 'phonemes'
      ? Array.from(phonemes, (id) => rowOf(w, 'phonemes', id, hidden))
      : [token(w, values[w.config.name] ?? undefined, hidden)],
  )
  const rows = new Float32Array(tokens.length * hidden)
  for (const [i, row] of tokens.entries()) rows.set(row, i * hidden)
  return { rows }
}

/**
 * Whether a checkpoint with these conditioners takes the values. It needs no weights, so it can be asked before they are
 * loaded.
 *
 * @throws InputError for a value out of its range, of another length, or left out where nothing was learned for that
 */
export function checkConditions(conditioners: readonly ConditionerConfig[], values: ConditionValues): void {
  for (const config of conditioners) {
    const { name, kind, unconditional } = config
    const value = values[name] ?? undefined
    if (kind === 'phonemes') continue // a row each, which says which are none
    if (value === undefined) {
      if (unconditional) continue
      throw new InputError(
        `conditioning: ${name} is left out, expected a value: this model has learned nothing for that`,
      )
    }
    const width = kind === 'integer' ? 1 : config.width
    if (value.length !== width)
      throw new InputError(`conditioning: ${name} has ${value.length} numbers, expected ${width}`)
    if (kind !== 'passthrough') for (const v of Array.from(value)) expectInRange(name, v, config)
  }
}

function token(w: ConditionerWeights, value: ArrayLike<number> | undefined, hidden: number): ArrayLike<number> {
  const { config, unconditional } = w
  if (value === undefined) return unconditional!.data
  switch (config.kind) {
    case 'passthrough':
      return projected(w, value, hidden)
    case 'fourier':
      return waves(w, value, config, hidden)
    case 'integer':
      return rowOf(w, config.name, value[0]! - config.min, hidden)
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
  { weight }: ConditionerWeights,
  x: ArrayLike<number>,
  { min, max }: Range,
  hidden: number,
): Float64Array {
  const u = Array.from(x, (v) => (v - min) / (max - min))
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
function expectInRange(name: string, value: number, { min, max }: Range): void {
  const rounded = Math.fround(value)
  if (rounded >= Math.fround(min) && rounded <= Math.fround(max)) return
  throw new InputError(`conditioning: ${name} is ${value}, expected ${min} to ${max}`)
}
