// y[r, :] = x[r, :] / sqrt(mean(x[r, :]^2) + EPS) * (OFFSET + w)
// SLICES neighbours share a row: each adds up all of it (the loads are broadcast, so no barrier is needed) and writes
// every SLICES-th element.
// needs: lib/step, lib/rows, lib/vector or lib/scalar; alias X, Y; const WIDTH, OFFSET, EPS, ROWS, SLICES, WORKGROUP

@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(1) var<storage, read> w: array<Values>;
@group(0) @binding(2) var<storage, read_write> y: array<Made>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = flat_group(group) * WORKGROUP + lane;
  let row = at / SLICES;
  if (row >= row_count()) { return; }
  let width = WIDTH / LANES;
  let start = row * width;
  var squares = Values();
  for (var i = 0u; i < width; i++) {
    let v = Values(x[start + i]);
    squares += v * v;
  }
  let scale = inverseSqrt(total(squares) / f32(WIDTH) + EPS);
  for (var i = at % SLICES; i < width; i += SLICES) {
    y[start + i] = Made(Values(x[start + i]) * scale * (f32(OFFSET) + w[i]));
  }
}
