// y[t, o] = sum_i x[t, i] w[o, i], handed to finish()
// An invocation owns a tile of RM rows x RN columns in registers; no barriers, no workgroup memory. Columns lie along
// x, so that neighbours share rows of x. Loads beyond the last row or column are clamped, stores are masked.
// needs: lib/step, lib/rows, lib/weight_*, lib/finish_*; alias X, W, Y;
//   const IN, OUT, ROWS, RM, RN, GROUP_X, GROUP_Y, Y_BINDING

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> w: array<W>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<Y>;

@compute @workgroup_size(GROUP_X, GROUP_Y)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let rows = row_count();
  let row = id.y * RM;
  let column = id.x * RN;
  if (row >= rows || column >= OUT) { return; }

  var at: array<u32, RM>; // where each row of x begins, in vec4
  for (var m = 0u; m < RM; m++) { at[m] = min(row + m, rows - 1u) * (IN / 4u); }

  var sum: array<array<f32, RN>, RM>;
  for (var k = 0u; k < IN; k += 8u) {
    var lo: array<vec4f, RM>;
    var hi: array<vec4f, RM>;
    for (var m = 0u; m < RM; m++) {
      lo[m] = vec4f(x[at[m] + k / 4u]);
      hi[m] = vec4f(x[at[m] + k / 4u + 1u]);
    }
    for (var n = 0u; n < RN; n++) {
      let b = weight8(min(column + n, OUT - 1u), k);
      for (var m = 0u; m < RM; m++) { sum[m][n] += dot(lo[m], b.lo) + dot(hi[m], b.hi); }
    }
  }

  for (var m = 0u; m < RM; m++) {
    for (var n = 0u; n < RN; n++) {
      if (row + m < rows && column + n < OUT) { finish(row + m, column + n, sum[m][n]); }
    }
  }
}
