const tokenByToken = ['delta_chunk', 'delta_scan']

/** What each arm does without. `conv` has the fused convolution, `reference` has not; both run token by token. */
export const arms = {
  reference: [...tokenByToken, 'conv_prepare'],
  conv: tokenByToken,
  optimized: [],
} as const satisfies Readonly<Record<string, readonly string[]>>
export type Arm = keyof typeof arms
