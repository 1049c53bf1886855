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

// y less a column of A, of four rows each, times x.
fn less(y: mat4x4f, at: u32, x: f32) -> mat4x4f {
  let m = vec4f(-x);
  return mat4x4f(fma(lower[at], m, y[0]), fma(lower[at + 1u], m, y[1]),
                 fma(lower[at + 2u], m, y[2]), fma(lower[at + 3u], m, y[3]));
}

// x[q], without a variable index: GPU compilers put what has one into memory.
fn pick(x: mat4x4f, q: u32) -> vec4f { return select(select(x[3], x[2], q == 2u), select(x[1], x[0], q == 0u), q < 2u); }

// Only the first `rows` rows, rounded up to 16.
fn solve(x: ptr<function, array<vec4f, 16>>, rows: u32) {
  for (var first = 0u; 4u * first < rows; first += 4u) {
    var y = mat4x4f((*x)[first], (*x)[first + 1u], (*x)[first + 2u], (*x)[first + 3u]);
    for (var q = 0u; q < first; q++) {
      let xq = (*x)[q];
      let at = lower_at(first, 4u * q);
      y = less(less(less(less(y, at, xq.x), at + 4u, xq.y), at + 8u, xq.z), at + 12u, xq.w);
    }
    let at = lower_at(first, 4u * first);
    for (var a = at; a < at + 64u; a += 16u) { // the zeros of A leave the rows that are ready as they are
      let q = (a - at) / 16u;
      y = less(y, a, pick(y, q).x);
      y = less(y, a + 4u, pick(y, q).y);
      y = less(y, a + 8u, pick(y, q).z);
      y = less(y, a + 12u, pick(y, q).w);
    }
    (*x)[first] = y[0];
    (*x)[first + 1u] = y[1];
    (*x)[first + 2u] = y[2];
    (*x)[first + 3u] = y[3];
  }
}
