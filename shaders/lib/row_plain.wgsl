// The rows of x that rms_norm.wgsl norms.    needs: lib/vector or lib/scalar; const WIDTH
@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(1) var<storage, read> w: array<Values>;
@group(0) @binding(2) var<storage, read_write> y: array<Made>;

fn row_value(row: u32, i: u32) -> Values { return Values(x[row * (WIDTH / LANES) + i]); }
fn keep(row: u32, i: u32, v: Values) {}
