/** The maths of shaders/lib/activation.wgsl for the CPU twins, in double. */

/** 1 / (1 + exp(-x)). */
export const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x))

/** x · sigmoid(x), also known as swish. */
export const silu = (x: number): number => x * sigmoid(x)

/** log(1 + exp(x)); beyond 20 the 1 is below f32's precision, as in PyTorch. */
export const softplus = (x: number): number => (x > 20 ? x : Math.log1p(Math.exp(x)))

/** x · P(X ≤ x) of a normal X, by the error function (Hendrycks and Gimpel 2016). */
export function gelu(x: number): number {
  const tail = erfc(Math.abs(x) * Math.SQRT1_2) / 2
  return x * (x >= 0 ? 1 - tail : tail)
}

/** The same by PyTorch's 'tanh' formula. */
export const geluTanh = (x: number): number => x * sigmoid(2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))

/** 1 - erf(z) for z ≥ 0: by the series of erf near 0, by the continued fraction beyond. */
function erfc(z: number): number {
  const bell = Math.exp(-z * z) / Math.sqrt(Math.PI)
  if (z > 2) {
    let fraction = z
    for (let n = 60; n > 0; n--) fraction = z + n / 2 / fraction
    return bell / fraction
  }
  let [sum, term] = [0, z]
  for (let n = 1; term > 1e-17; n++) {
    sum += term
    term *= (2 * z * z) / (2 * n + 1)
  }
  return 1 - 2 * bell * sum
}
