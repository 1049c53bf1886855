/** The maths of shaders/lib/activation.wgsl for the CPU twins, in double. */

/** 1 / (1 + exp(-x)). */
export const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x))

/** x · sigmoid(x), also known as swish. */
export const silu = (x: number): number => x * sigmoid(x)

/** log(1 + exp(x)); beyond 20 the 1 is below f32's precision, as in PyTorch. */
export const softplus = (x: number): number => (x > 20 ? x : Math.log1p(Math.exp(x)))
