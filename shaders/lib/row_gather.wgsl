// The rows that rms_norm.wgsl norms: rows index[r] of x plus its parts, kept as the new x.
// needs: lib/vector or lib/scalar, lib/parts; const WIDTH
@group(0) @binding(0) var<storage, read> x: array<Values>;
@group(0) @binding(1) var<storage, read> parts: array<Values>;
@group(0) @binding(2) var<storage, read> w: array<Values>;
@group(0) @binding(3) var<storage, read> index: array<u32>;
@group(0) @binding(4) var<storage, read_write> sum: array<Values>;
@group(0) @binding(5) var<storage, read_write> y: array<Made>;

fn row_value(row: u32, i: u32) -> Values { return row_sum(index[row], i); }
fn keep(row: u32, i: u32, v: Values) { sum[row * (WIDTH / LANES) + i] = v; }
