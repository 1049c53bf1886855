// The formula of linear.wgsl on matrix units: f16 operands, f32 sums. A workgroup makes BM x BN sums; its WM x WN
// subgroups share them out and keep theirs in RM x RN fragments of FM x FN, s00 to s33. x and w pass through workgroup
// memory in tiles of BK terms, rows of x above rows of w, eight halves to a vec4u; the next tile waits in registers.
// Fragments that lie in y as a whole may go there at once; the others go through finish(), sum by sum.
// Unrolled by hand, a name for each: arrays in loops were six times slower (bench/attempts/linear_matrix_loops.md).
// needs: lib/step, rows, columns, stage, fragments, fragment_rows, fragment_*, finish_*; alias X = W = vec4<u32>, Y;
//   const IN, OUT, ROWS, HALVES, KS, BM, BN, BK, WM, WN, BLOCK = BN / WN, FM, FN, FK, SUBGROUP, Y_BINDING, Y_WIDTH

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> w: array<W>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<Y>;

const WORKGROUP = WM * WN * SUBGROUP;
const BK8 = BK / 8;
const FK8 = FK / 8;
const STEPS = min(BK / FK, 2); // of FK terms at once
const WIDTH = BK8 + 1; // of a row in workgroup memory: one more, so that rows begin in different banks
const XS = BM * BK8 / WORKGROUP; // vec4u of x and of w that an invocation carries, at most 4
const WS = BN * BK8 / WORKGROUP;

var<workgroup> tile: array<vec4u, (BM + BN) * WIDTH>;

@compute @workgroup_size(WORKGROUP)
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(local_invocation_index) thread: u32,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(subgroup_invocation_id) lane: u32,
) {
  let rows = row_count();
  let top = subgroup / WN * (BM / WM); // of the subgroup's rows and columns in the tile
  let left = subgroup % WN * BLOCK;

  let i = thread + vec4u(0, 1, 2, 3) * WORKGROUP; // the vec4u of x and of w that this invocation carries
  let c = group.x * BN + i / BK8;
  let x_at = min(group.y * BM + i / BK8, vec4u(rows - 1u)) * (IN / 8) + i % BK8;
  let w_at = vec4u(weight_row(c.x), weight_row(c.y), weight_row(c.z), weight_row(c.w)) * (IN / 8) + i % BK8;
  let to = i / BK8 * WIDTH + i % BK8;
  let end = min((group.z + 1u) * KS, IN) / 8u;
  var k = group.z * KS / 8u;
  var x_next = read_x(x_at + k);
  var w_next = read_w(w_at + k);

  var s00: Sums; var s01: Sums; var s02: Sums; var s03: Sums;
  var s10: Sums; var s11: Sums; var s12: Sums; var s13: Sums;
  var s20: Sums; var s21: Sums; var s22: Sums; var s23: Sums;
  var s30: Sums; var s31: Sums; var s32: Sums; var s33: Sums;
  for (; k < end; k += BK8) {
    put(to, x_next, XS);
    put(to + BM * WIDTH, w_next, WS);
    workgroupBarrier();
    if (k + BK8 < end) {
      x_next = read_x(x_at + k + BK8);
      w_next = read_w(w_at + k + BK8);
    }
    for (var f = 0u; f < BK8; f += STEPS * FK8) {
      let a_at = top * WIDTH + f;
      let b_at = (BM + left) * WIDTH + f;
      let a0 = left_at(a_at, 0); let a1 = left_at(a_at, 1);
      let a2 = left_at(a_at, 2); let a3 = left_at(a_at, 3);
      {
        let b = right_at(b_at, 0);
        s00 = add(0, a0, b, s00); s10 = add(1, a1, b, s10); s20 = add(2, a2, b, s20); s30 = add(3, a3, b, s30);
      }
      if (RN > 1) {
        let b = right_at(b_at, 1);
        s01 = add(0, a0, b, s01); s11 = add(1, a1, b, s11); s21 = add(2, a2, b, s21); s31 = add(3, a3, b, s31);
      }
      if (RN > 2) {
        let b = right_at(b_at, 2);
        s02 = add(0, a0, b, s02); s12 = add(1, a1, b, s12); s22 = add(2, a2, b, s22); s32 = add(3, a3, b, s32);
      }
      if (RN > 3) {
        let b = right_at(b_at, 3);
        s03 = add(0, a0, b, s03); s13 = add(1, a1, b, s13); s23 = add(2, a2, b, s23); s33 = add(3, a3, b, s33);
      }
      if (STEPS > 1) {
        let a_then = a_at + FK8;
        let b_then = b_at + FK8;
        let a0 = left_at(a_then, 0); let a1 = left_at(a_then, 1);
        let a2 = left_at(a_then, 2); let a3 = left_at(a_then, 3);
        {
          let b = right_at(b_then, 0);
          s00 = add(0, a0, b, s00); s10 = add(1, a1, b, s10); s20 = add(2, a2, b, s20); s30 = add(3, a3, b, s30);
        }
        if (RN > 1) {
          let b = right_at(b_then, 1);
          s01 = add(0, a0, b, s01); s11 = add(1, a1, b, s11); s21 = add(2, a2, b, s21); s31 = add(3, a3, b, s31);
        }
        if (RN > 2) {
          let b = right_at(b_then, 2);
          s02 = add(0, a0, b, s02); s12 = add(1, a1, b, s12); s22 = add(2, a2, b, s22); s32 = add(3, a3, b, s32);
        }
        if (RN > 3) {
          let b = right_at(b_then, 3);
          s03 = add(0, a0, b, s03); s13 = add(1, a1, b, s13); s23 = add(2, a2, b, s23); s33 = add(3, a3, b, s33);
        }
      }
    }
    workgroupBarrier();
  }

  let at = Place(group.y * BM + top, group.x * BN + left, rows, group.z * COLUMNS, subgroup * HALVES * FRAGMENT, lane);
  if (DIRECT && (group.y + 1u) * BM <= rows && (group.x + 1u) * BN <= COLUMNS) {
    store_row(at, 0, s00, s01, s02, s03);
    if (RM > 1) { store_row(at, 1, s10, s11, s12, s13); }
    if (RM > 2) { store_row(at, 2, s20, s21, s22, s23); }
    if (RM > 3) { store_row(at, 3, s30, s31, s32, s33); }
    return;
  }
  finish_row(at, 0, s00, s01, s02, s03);
  if (RM > 1) { finish_row(at, 1, s10, s11, s12, s13); }
  if (RM > 2) { finish_row(at, 2, s20, s21, s22, s23); }
  if (RM > 3) { finish_row(at, 3, s30, s31, s32, s33); }
}
