// The formula of linear.wgsl on matrix units: f16 operands, f32 sums. A workgroup makes BM x BN sums; its WM x WN
// subgroups share them out and keep theirs in RM x RN fragments of FM x FN. x and w pass through workgroup memory in
// tiles of BK terms, rows of x above rows of w, eight halves to a vec4u; the next tile waits in registers.
// Fragments that lie in y as a whole may go there at once; the others go through `spill`, one (gate and up: two) per
// subgroup at a time, and finish().
// needs: lib/step, lib/rows, lib/columns, lib/fragment_*, lib/finish_*; alias X = W = vec4<u32>, Y;
//   const IN, OUT, ROWS, HALVES, KS, BM, BN, BK, WM, WN, BLOCK = BN / WN, FM, FN, FK, SUBGROUP, Y_BINDING, Y_WIDTH

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> w: array<W>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<Y>;

alias Left = subgroup_matrix_left<f16, FK, FM>; // columns, rows
alias Right = subgroup_matrix_right<f16, FN, FK>;
alias Sums = subgroup_matrix_result<f32, FN, FM>;

const RM = BM / WM / FM;
const RN = BN / WN / FN;
const WORKGROUP = WM * WN * SUBGROUP;
const BK8 = BK / 8;
const WIDTH = BK8 + 1; // of a row in workgroup memory: one more, so that rows begin in different banks
const XS = BM * BK8 / WORKGROUP; // vec4u of x and of w that an invocation carries
const WS = BN * BK8 / WORKGROUP;
const FRAGMENT = FM * FN;

var<workgroup> tile: array<vec4u, (BM + BN) * WIDTH>;
var<workgroup> spill: array<f32, WM * WN * HALVES * FRAGMENT>;

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

  var x_at: array<u32, XS>; // where an invocation's part of a row begins, in vec4u
  var w_at: array<u32, WS>;
  var x_next: array<vec4u, XS>;
  var w_next: array<vec4u, WS>;
  let end = min((group.z + 1u) * KS, IN) / 8u;
  var k = group.z * KS / 8u;
  for (var i = 0u; i < XS; i++) {
    let at = thread + i * WORKGROUP;
    x_at[i] = min(group.y * BM + at / BK8, rows - 1u) * (IN / 8) + at % BK8;
    x_next[i] = x[x_at[i] + k];
  }
  for (var i = 0u; i < WS; i++) {
    let at = thread + i * WORKGROUP;
    w_at[i] = weight_row(group.x * BN + at / BK8) * (IN / 8) + at % BK8;
    w_next[i] = w[w_at[i] + k];
  }

  var sums: array<array<Sums, RN>, RM>;
  for (; k < end; k += BK8) {
    for (var i = 0u; i < XS; i++) { tile[tile_at(thread + i * WORKGROUP)] = x_next[i]; }
    for (var i = 0u; i < WS; i++) { tile[BM * WIDTH + tile_at(thread + i * WORKGROUP)] = w_next[i]; }
    workgroupBarrier();
    if (k + BK8 < end) {
      for (var i = 0u; i < XS; i++) { x_next[i] = x[x_at[i] + k + BK8]; }
      for (var i = 0u; i < WS; i++) { w_next[i] = w[w_at[i] + k + BK8]; }
    }
    for (var f = 0u; f < BK8; f += FK / 8) {
      var a: array<Left, RM>;
      for (var m = 0u; m < RM; m++) {
        a[m] = subgroupMatrixLoad<Left, row_major>(&tile, (top + m * FM) * WIDTH + f, WIDTH);
      }
      for (var n = 0u; n < RN; n++) {
        let b = subgroupMatrixLoad<Right, col_major>(&tile, (BM + left + n * FN) * WIDTH + f, WIDTH);
        for (var m = 0u; m < RM; m++) { sums[m][n] = subgroupMatrixMultiplyAccumulate(a[m], b, sums[m][n]); }
      }
    }
    workgroupBarrier();
  }

  let row = group.y * BM + top;
  let column = group.x * BN + left;
  if (DIRECT && (group.y + 1u) * BM <= rows && (group.x + 1u) * BN <= COLUMNS) {
    for (var m = 0u; m < RM; m++) {
      for (var n = 0u; n < RN; n++) {
        store_fragment((row + m * FM) * Y_WIDTH + group.z * COLUMNS + column + n * FN, sums[m][n]);
      }
    }
    return;
  }
  let mine = subgroup * HALVES * FRAGMENT;
  for (var m = 0u; m < RM; m++) {
    for (var n = 0u; n < RN / HALVES; n++) {
      for (var h = 0u; h < HALVES; h++) {
        subgroupMatrixStore<row_major>(&spill, mine + h * FRAGMENT, sums[m][n + h * (RN / HALVES)], FN);
      }
      workgroupBarrier();
      for (var i = lane; i < FRAGMENT; i += SUBGROUP) {
        let r = row + m * FM + i / FN;
        let c = y_column(column + n * FN + i % FN);
        let pair = vec2f(spill[mine + i], spill[mine + (HALVES - 1) * FRAGMENT + i]);
        if (r < rows && c < COLUMNS) { finish(r, group.z * COLUMNS + c, pair); }
      }
      workgroupBarrier();
    }
  }
}

// Where vec4u i of the rows of x or of w lies in workgroup memory.
fn tile_at(i: u32) -> u32 { return i / BK8 * WIDTH + i % BK8; }
