// y[t, :] = W window(t) + bias: a convolution over time as a product of its windows, each handed to finish().
// As in linear.wgsl an invocation owns RM rows x RN columns in registers, without barriers; any number of channels.
// The grid of rows folds into z.
// needs: lib/step, lib/rows, lib/operand_window, lib/columns, lib/weight_*, lib/finish_conv; alias X, W, Y;
//   const IN, OUT, ROWS, HALVES = 1, RM, RN, BLOCK = RN, GROUP_X, GROUP_Y, FOLD, Y_BINDING

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> w: array<Words>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<Y>;

struct Eight { lo: vec4f, hi: vec4f }

fn value(row: u32, k: u32) -> f32 {
  let at = operand_at(row, k, 1u);
  if (operand_has(at, 1u)) { return f32(x[at]); }
  return 0.0;
}

// Eight terms of a window from k on. Of a multiple of eight channels they lie in one row of x.
fn window8(row: u32, k: u32) -> Eight {
  if (CHANNELS % 8 != 0) {
    return Eight(
      vec4f(value(row, k), value(row, k + 1u), value(row, k + 2u), value(row, k + 3u)),
      vec4f(value(row, k + 4u), value(row, k + 5u), value(row, k + 6u), value(row, k + 7u)),
    );
  }
  let i = operand_at(row, k, 1u);
  if (!operand_has(i, 1u)) { return Eight(); }
  return Eight(
    vec4f(f32(x[i]), f32(x[i + 1u]), f32(x[i + 2u]), f32(x[i + 3u])),
    vec4f(f32(x[i + 4u]), f32(x[i + 5u]), f32(x[i + 6u]), f32(x[i + 7u])),
  );
}

@compute @workgroup_size(GROUP_X, GROUP_Y)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let rows = product_rows();
  let row = (id.z * FOLD * GROUP_Y + id.y) * RM;
  let column = id.x * RN;
  if (row >= rows || column >= OUT) { return; }

  var sum: array<array<f32, RN>, RM>;
  for (var k = 0u; k < IN; k += 8u) {
    var terms: array<Eight, RM>;
    for (var m = 0u; m < RM; m++) { terms[m] = window8(min(row + m, rows - 1u), k); }
    for (var n = 0u; n < RN; n++) {
      let b = weight8(weight_row(column + n), k);
      for (var m = 0u; m < RM; m++) { sum[m][n] += dot(terms[m].lo, b.lo) + dot(terms[m].hi, b.hi); }
    }
  }

  for (var m = 0u; m < RM; m++) {
    for (var n = 0u; n < RN; n++) {
      if (row + m < rows && column + n < OUT) { finish(row + m, column + n, vec2f(sum[m][n])); }
    }
  }
}
