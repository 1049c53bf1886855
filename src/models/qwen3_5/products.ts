import type { MatrixProduct } from '../../kernels/tune/product.ts'
import type { TextConfig, VisionConfig } from './config.ts'

/** The products of every token, by the names of their weights, and how many layers have them. */
export function products(c: TextConfig): (MatrixProduct & { readonly layers: number })[] {
  const { hidden, intermediate, layers, attention, delta } = c
  const keys = delta.keyHeads * delta.keyWidth
  const values = delta.valueHeads * delta.valueWidth
  const queries = attention.heads * attention.headDim
  const cached = attention.kvHeads * attention.headDim
  const linear = layers.filter((kind) => kind === 'linear').length
  const full = layers.length - linear
  return [
    { name: 'delta in', N: 2 * keys + 2 * values + 2 * delta.valueHeads, K: hidden, use: 'store', layers: linear },
    { name: 'delta out', N: hidden, K: values, use: 'parts', layers: linear },
    { name: 'attention in', N: 2 * queries + 2 * cached, K: hidden, use: 'store', layers: full },
    { name: 'attention out', N: hidden, K: queries, use: 'parts', layers: full },
    { name: 'gate up', N: 2 * intermediate, K: hidden, use: 'swiglu', layers: layers.length },
    { name: 'down', N: hidden, K: intermediate, use: 'parts', layers: layers.length },
  ]
}

/** Those of every patch of an image, and of every token of one. */
export function visionProducts(c: VisionConfig): (MatrixProduct & { readonly layers: number })[] {
  const merged = c.merge ** 2 * c.hidden
  return [
    { name: 'patches', N: c.hidden, K: 3 * c.patch ** 2, use: 'store', layers: 1 },
    { name: 'vision q k v', N: 3 * c.hidden, K: c.hidden, use: 'store', layers: c.depth },
    { name: 'vision out', N: c.hidden, K: c.hidden, use: 'parts', layers: c.depth },
    { name: 'vision up', N: c.intermediate, K: c.hidden, use: 'store', layers: c.depth },
    { name: 'vision down', N: c.hidden, K: c.intermediate, use: 'parts', layers: c.depth },
    { name: 'merger in', N: merged, K: merged, use: 'store', layers: 1 },
    { name: 'merger out', N: c.out, K: merged, use: 'store', layers: 1 },
  ]
}
