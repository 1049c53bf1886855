// The rows that rms_norm.wgsl norms: x plus its BLOCKS partial sums, kept as the new x.
// needs: lib/vector or lib/scalar; const WIDTH, BLOCKS
@group(0) @binding(0) var<storage, read> x: array<Values>;
@group(0) @binding(1) var<storage, read> parts: array<Values>; // [T, BLOCKS, WIDTH]
@group(0) @binding(2) var<storage, read> w: array<Values>;
@group(0) @binding(3) var<storage, read_write> sum: array<Values>;
@group(0) @binding(4) var<storage, read_write> y: array<Made>;

fn row_value(row: u32, i: u32) -> Values {
  let width = WIDTH / LANES;
  var v = x[row * width + i];
  for (var s = 0u; s < BLOCKS; s++) { v += parts[(row * BLOCKS + s) * width + i]; }
  return v;
}
fn keep(row: u32, i: u32, v: Values) { sum[row * (WIDTH / LANES) + i] = v; }
