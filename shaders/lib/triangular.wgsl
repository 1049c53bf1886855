// solve(x): x <- (I + A)^-1 x for A strictly lower triangular, 64 x 64, by forward substitution:
//   x[i] <- x[i] - sum_{j<i} A[i, j] x[j]
// One column x per invocation, four rows to a vec4. Rows go in blocks of 16 whose values stay in registers while
// every row above is read once. A lies in workgroup memory as 10 lower tiles of 16 x 16, each column by column, with
// zeros on and above the diagonal; write it through lower_at(), then a barrier, then solve.
var<workgroup> lower: array<vec4f, 640>;

// Where the vec4 A[4 quad .. 4 quad + 3, j] lies; only for j / 16 <= quad / 4.
fn lower_at(quad: u32, j: u32) -> u32 {
  let tile = quad / 4u * (quad / 4u + 1u) / 2u + j / 16u;
  return tile * 64u + j % 16u * 4u + quad % 4u;
}

// Only the first `rows` rows, rounded up to 16.
fn solve(x: ptr<function, array<vec4f, 16>>, rows: u32) {
  for (var block = 0u; block < rows; block += 16u) {
    let first = block / 4u;
    var y: array<vec4f, 4>;
    for (var r = 0u; r < 4u; r++) { y[r] = (*x)[first + r]; }
    for (var q = 0u; q < first; q++) {
      let xq = (*x)[q];
      let at = lower_at(first, 4u * q);
      for (var m = 0u; m < 4u; m++) {
        for (var r = 0u; r < 4u; r++) { y[r] -= lower[at + 4u * m + r] * xq[m]; }
      }
    }
    for (var j = 0u; j < 16u; j++) { // the zeros of A leave rows up to j as they are
      let yj = y[j / 4u][j % 4u];
      for (var r = 0u; r < 4u; r++) { y[r] -= lower[lower_at(first, block + j) + r] * yj; }
    }
    for (var r = 0u; r < 4u; r++) { (*x)[first + r] = y[r]; }
  }
}
