// Row m of a subgroup's fragments on its way to y. Sums that finish() has to see pass through the tile's memory, which
// nobody needs by then: FM rows of BLOCK sums per subgroup. Slices add theirs there.
// needs: lib/fragments, fragment_direct or fragment_finish, columns, finish_*; tile: array<vec4u>;
//   const SL, WM, WN, SUBGROUP, Y_WIDTH
const QUADS = BLOCK / 4; // of a row of sums
const SPILL = FM * QUADS;
const SLICE = WM * WN * SPILL;

// The subgroup's first row and column, rows of y, where this part of the sum begins, where the subgroup spills.
struct Place { row: u32, column: u32, rows: u32, part: u32, spill: u32, slice: u32, lane: u32 }

// As a whole.
fn store_row(p: Place, m: u32, s0: Sums, s1: Sums, s2: Sums, s3: Sums) {
  let at = (p.row + m * FM) * Y_WIDTH + p.part + p.column;
  store_fragment(at, s0);
  if (RN > 1) { store_fragment(at + FN, s1); }
  if (RN > 2) { store_fragment(at + 2 * FN, s2); }
  if (RN > 3) { store_fragment(at + 3 * FN, s3); }
}

// Sum by sum. Of SwiGLU the first half of a row is the gate's.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn finish_row(p: Place, m: u32, s0: Sums, s1: Sums, s2: Sums, s3: Sums) {
  let at = min(p.spill, SL * SLICE - SPILL);
  subgroupMatrixStore<row_major>(&tile, at, s0, QUADS);
  if (RN > 1) { subgroupMatrixStore<row_major>(&tile, at + FN / 4, s1, QUADS); }
  if (RN > 2) { subgroupMatrixStore<row_major>(&tile, at + 2 * FN / 4, s2, QUADS); }
  if (RN > 3) { subgroupMatrixStore<row_major>(&tile, at + 3 * FN / 4, s3, QUADS); }
  workgroupBarrier();
  for (var i = p.slice * SUBGROUP + p.lane; i < SPILL / HALVES; i += SL * SUBGROUP) {
    let row = p.row + m * FM + i / (QUADS / HALVES);
    let quad = i % (QUADS / HALVES);
    let begin = at % SLICE + i / (QUADS / HALVES) * QUADS + quad;
    let s = slices_sum(begin);
    let up = slices_sum(begin + QUADS - QUADS / HALVES);
    let column = y_column(p.column) + quad * 4;
    if (row < p.rows) {
      finish_one(row, p.part, column, s.x, up.x);
      finish_one(row, p.part, column + 1, s.y, up.y);
      finish_one(row, p.part, column + 2, s.z, up.z);
      finish_one(row, p.part, column + 3, s.w, up.w);
    }
  }
  workgroupBarrier();
}

fn slices_sum(at: u32) -> vec4f {
  let first = bitcast<vec4f>(tile[at]);
  if (SL == 1) { return first; }
  let two = first + bitcast<vec4f>(tile[at + SLICE]);
  if (SL == 2) { return two; }
  return two + (bitcast<vec4f>(tile[at + 2 * SLICE]) + bitcast<vec4f>(tile[at + 3 * SLICE]));
}

fn finish_one(row: u32, part: u32, column: u32, s: f32, up: f32) {
  if (column < COLUMNS) { finish(row, part + column, vec2f(s, up)); }
}
