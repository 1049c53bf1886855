// The formula of linear.wgsl on matrix units: f16 operands, f32 sums. A workgroup makes BM x BN sums; its WM x WN
// subgroups share them out and keep theirs in RM x RN fragments of FM x FN. x and w pass through workgroup memory in
// tiles of BK terms, rows of x above rows of w, eight halves to a vec4u; the next tile waits in registers.
// SL such crews may share a workgroup: each sums its own stretch of K in its own tile, and their sums are added at last.
// Fragments that lie in y as a whole may go there at once; the others go through finish(), sum by sum.
// The number of tiles is a constant wherever the parts of a sum are equally long: compilers then overlap the turns.
// needs: lib/step, rows, operand_*, columns, stage, fragments, fragment_rows, fragment_*, finish_*;
//   alias X = W = vec4<u32>, Y; const IN, OUT, ROWS, HALVES, KS, SL, BM, BN, BK (at most 4 FK), WM, WN, BLOCK = BN / WN,
//   FM, FN, FK, SUBGROUP, Y_BINDING, Y_WIDTH

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> w: array<W>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<Y>;

const CREW = WM * WN * SUBGROUP;
const BK8 = BK / 8;
const WIDTH = BK8 + 1; // of a row in workgroup memory: one more, so that rows begin in different banks
const OWN = (BM + BN) * WIDTH; // of a crew there
const XS = (BM * BK8 + CREW - 1) / CREW; // vec4u of x and of w that an invocation carries, at most 8
const WS = (BN * BK8 + CREW - 1) / CREW;

var<workgroup> tile: array<vec4u, SL * max(OWN, WM * WN * SPILL)>;

@compute @workgroup_size(SL * CREW)
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(local_invocation_index) thread: u32,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_invocation_id) lane: u32,
) {
  let rows = product_rows();
  let slice = min(subgroup / (WM * WN), SL - 1);
  let top = subgroup / WN % WM * (BM / WM); // of the subgroup's rows and columns in the tile
  let left = subgroup % WN * BLOCK;
  let x_first = slice * OWN + top * WIDTH;
  let w_first = slice * OWN + (BM + left) * WIDTH;

  let member = thread % CREW;
  let crew = thread / CREW;
  let place = member / BK8 * WIDTH + member % BK8;
  let row = group.y * BM + member / BK8; // of x, and the first of the terms that the invocation carries
  let begin = (group.z * SL + crew) * KS;
  let term = begin + member % BK8 * 8;
  var x_at = operand_at(row, term, 8u);
  let column = group.x * BN + member / BK8;
  var w_at = row_of(column) * ROW + begin / 8 + member % BK8;
  var x_next = read_x(x_at);
  var w_next = read_w(w_at, column);
  let tiles = select((min(KS, IN - group.z * KS)) / BK, KS / BK, IN % KS == 0);

  var s: Block;
  for (var i = 0u; i < tiles; i++) {
    put(crew, place, 0, x_next, XS, BM);
    put(crew, place, BM * WIDTH, w_next, WS, BN);
    workgroupBarrier();
    x_at = operand_next(x_at, row, term + (i + 1) * BK, 8u);
    w_at += BK8;
    if (i + 1u < tiles) {
      x_next = read_x(x_at);
      w_next = read_w(w_at, column);
    }
    s = add_terms(s, x_first, w_first, 0);
    if (BK > FK) { s = add_terms(s, x_first, w_first, FK8); }
    if (BK > 2 * FK) {
      s = add_terms(s, x_first, w_first, 2 * FK8);
      s = add_terms(s, x_first, w_first, 3 * FK8);
    }
    workgroupBarrier();
  }

  let at = Place(group.y * BM + top, group.x * BN + left, rows, group.z * COLUMNS, subgroup * SPILL, slice, lane);
  if (DIRECT && SL == 1 && (group.y + 1u) * BM <= rows && (group.x + 1u) * BN <= COLUMNS) {
    store_row(at, 0, s.s00, s.s01, s.s02, s.s03);
    if (RM > 1) { store_row(at, 1, s.s10, s.s11, s.s12, s.s13); }
    if (RM > 2) { store_row(at, 2, s.s20, s.s21, s.s22, s.s23); }
    if (RM > 3) { store_row(at, 3, s.s30, s.s31, s.s32, s.s33); }
    return;
  }
  finish_row(at, 0, s.s00, s.s01, s.s02, s.s03);
  if (RM > 1) { finish_row(at, 1, s.s10, s.s11, s.s12, s.s13); }
  if (RM > 2) { finish_row(at, 2, s.s20, s.s21, s.s22, s.s23); }
  if (RM > 3) { finish_row(at, 3, s.s30, s.s31, s.s32, s.s33); }
}
