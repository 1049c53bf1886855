import { InputError } from '../../errors.ts'
import { hash } from '../../kernels/fill_random.ts'

const TERMS = 12

/**
 * A voice that nobody has: a speaker vector of normally distributed numbers. The same seed, 0 to 2^32 - 1, gives the
 * same bits on every machine and in every version.
 *
 * Number i is the sum of twelve uniform ones, less six, which has mean 0 and variance 1 and no tail beyond 6. Uniform
 * number c is hash(hash(c) ^ hash(seed)) / 2^32, so any of them can be made without the others (a counter-based
 * generator). No logarithm and no cosine, which differ between machines in the last bit.
 */
export function randomVoice(seed: number, width = 128): Float32Array {
  if (!(Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32))
    throw new InputError(`randomVoice: seed is ${seed}, expected an integer from 0 to 4294967295`)
  const key = hash(seed)
  const uniform = (counter: number): number => hash((hash(counter) ^ key) >>> 0) / 2 ** 32
  return Float32Array.from({ length: width }, (_, i) => {
    let sum = -TERMS / 2
    for (let k = 0; k < TERMS; k++) sum += uniform(TERMS * i + k)
    return sum
  })
}
