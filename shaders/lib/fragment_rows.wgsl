// Row m of a subgroup's fragments on its way to y. Sums that finish() has to see pass through workgroup memory, one
// fragment (gate and up: two) per subgroup at a time.
// needs: lib/fragments, fragment_direct or fragment_finish, columns, finish_*; const WM, WN, HALVES, SUBGROUP, Y_WIDTH
const FRAGMENT = FM * FN;
var<workgroup> spill: array<f32, WM * WN * HALVES * FRAGMENT>;

// The subgroup's first row and column, rows of y, where this part of the sum begins, where the subgroup spills.
struct Place { row: u32, column: u32, rows: u32, part: u32, spill: u32, lane: u32 }

// As a whole.
fn store_row(p: Place, m: u32, s0: Sums, s1: Sums, s2: Sums, s3: Sums) {
  let at = (p.row + m * FM) * Y_WIDTH + p.part + p.column;
  store_fragment(at, s0);
  if (RN > 1) { store_fragment(at + FN, s1); }
  if (RN > 2) { store_fragment(at + 2 * FN, s2); }
  if (RN > 3) { store_fragment(at + 3 * FN, s3); }
}

// Sum by sum. Of SwiGLU the first half of a row is the gate's.
fn finish_row(p: Place, m: u32, s0: Sums, s1: Sums, s2: Sums, s3: Sums) {
  if (HALVES == 2) {
    if (RN == 2) { finish_pair(p, m, 0, s0, s1); }
    if (RN == 4) { finish_pair(p, m, 0, s0, s2); finish_pair(p, m, 1, s1, s3); }
  } else {
    finish_pair(p, m, 0, s0, s0);
    if (RN > 1) { finish_pair(p, m, 1, s1, s1); }
    if (RN > 2) { finish_pair(p, m, 2, s2, s2); }
    if (RN > 3) { finish_pair(p, m, 3, s3, s3); }
  }
}

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn finish_pair(p: Place, m: u32, n: u32, s: Sums, up: Sums) {
  subgroupMatrixStore<row_major>(&spill, p.spill, s, FN);
  if (HALVES == 2) { subgroupMatrixStore<row_major>(&spill, p.spill + FRAGMENT, up, FN); }
  workgroupBarrier();
  for (var i = p.lane; i < FRAGMENT; i += SUBGROUP) {
    let row = p.row + m * FM + i / FN;
    let column = y_column(p.column + n * FN + i % FN);
    let pair = vec2f(spill[p.spill + i], spill[p.spill + (HALVES - 1) * FRAGMENT + i]);
    if (row < p.rows && column < COLUMNS) { finish(row, p.part + column, pair); }
  }
  workgroupBarrier();
}
