// y[t, o] = sum_i x[t, i] w[o, i], handed to finish()
// An invocation owns a tile of RM rows x RN columns in registers; no barriers, no workgroup memory. Columns lie along
// x, so that neighbours share rows of x; z cuts the sum into SK parts of KS terms, which lie side by side in y. Loads
// beyond the last row or column are clamped, stores are masked.
// needs: lib/step, lib/rows, lib/columns, lib/weight_*, lib/finish_*; alias X, W, Y;
//   const IN, OUT, ROWS, HALVES, KS, RM, RN, BLOCK = RN, GROUP_X, GROUP_Y, Y_BINDING, Y_WIDTH

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> w: array<Words>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<Y>;

@compute @workgroup_size(GROUP_X, GROUP_Y)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let rows = row_count();
  let row = id.y * RM;
  let column = id.x * RN;
  if (row >= rows || y_column(column) >= COLUMNS) { return; }

  var at: array<u32, RM>; // where each row of x begins, in vec4
  for (var m = 0u; m < RM; m++) { at[m] = min(row + m, rows - 1u) * (IN / 4u); }

  var sum: array<array<f32, RN>, RM>;
  let end = min((id.z + 1u) * KS, IN);
  for (var k = id.z * KS; k < end; k += 8u) {
    var lo: array<vec4f, RM>;
    var hi: array<vec4f, RM>;
    for (var m = 0u; m < RM; m++) {
      lo[m] = vec4f(x[at[m] + k / 4u]);
      hi[m] = vec4f(x[at[m] + k / 4u + 1u]);
    }
    for (var n = 0u; n < RN; n++) {
      let b = weight8(weight_row(column + n), k);
      for (var m = 0u; m < RM; m++) { sum[m][n] += dot(lo[m], b.lo) + dot(hi[m], b.hi); }
    }
  }

  for (var m = 0u; m < RM; m++) {
    for (var n = 0u; n < PART; n++) {
      let to = y_column(column + n);
      let sums = vec2f(sum[m][n], sum[m][n + RN - PART]);
      if (row + m < rows && to < COLUMNS) { finish(row + m, id.z * COLUMNS + to, sums); }
    }
  }
}
