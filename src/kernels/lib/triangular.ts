/**
 * x ← (I + A)^-1 x by forward substitution, for A [n, n] strictly lower triangular and x [n, width], both row by row.
 * The maths of shaders/lib/triangular.wgsl for the CPU twins, in double.
 */
export function solveUnitLower(a: Float64Array, x: Float64Array, n: number): void {
  const width = x.length / n
  for (let i = 0; i < n; i++)
    for (let j = 0; j < i; j++) {
      const aij = a[i * n + j]!
      for (let c = 0; c < width; c++) x[i * width + c]! -= aij * x[j * width + c]!
    }
}
