import type { MatrixProduct } from '../../kernels/tune/product.ts'
import { textConfig, visionConfig } from '../../models/qwen3_5/config.ts'
import { products, visionProducts } from '../../models/qwen3_5/products.ts'
import { publishedConfig, publishedSizes } from '../../models/qwen3_5/published.ts'
import { type Files, openSource, readJson, type Source } from '../../weights/source.ts'

/** The matrix products of the published models, for `tune`. */
export const publishedProducts = (): MatrixProduct[] =>
  publishedSizes.flatMap((size) =>
    products(publishedConfig(size)).map((p) => productOf({ ...p, name: `${size} ${p.name}` })),
  )

/**
 * The matrix products of a checkpoint, for `tune`; only its config.json is read.
 *
 * @throws WeightsError for what is missing or not understood
 */
export async function productsOf(
  where: string | URL | Files | readonly File[] | Source,
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<MatrixProduct[]> {
  const json = await readJson(openSource(where), 'config.json', signal)
  const vision = visionConfig(json)
  return [...products(textConfig(json)), ...(vision ? visionProducts(vision) : [])].map(productOf)
}

const productOf = ({ name, N, K, use }: MatrixProduct): MatrixProduct => ({ name, N, K, use })
