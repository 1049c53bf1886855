// y[r, :] = v / sqrt(mean(v^2) + EPS) * (OFFSET + w) with v = row_value(r, ..): a row of x, or of x plus partial sums
// SLICES neighbours share a row and write every SLICES-th element; how they come by its sum is a piece.
// needs: lib/step, lib/rows, lib/vector or lib/scalar, lib/row_*, lib/sum_alone or lib/sum_shared; alias X, Y;
//   const WIDTH, OFFSET, EPS, ROWS, SLICES, WORKGROUP

alias Sum = f32;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = flat_group(group) * WORKGROUP + lane;
  let slice = at % SLICES;
  let row = min(at / SLICES, row_count() - 1u); // whoever has no row still meets the others at their barriers
  let width = WIDTH / LANES;
  var squares = Values();
  for (var i = first_of(slice); i < width; i += STRIDE) {
    let v = row_value(row, i);
    squares += v * v;
  }
  let scale = inverseSqrt(slices_sum(total(squares), lane) / f32(WIDTH) + EPS);
  if (row != at / SLICES) { return; }
  for (var i = slice; i < width; i += SLICES) {
    let v = row_value(row, i);
    keep(row, i, v);
    y[row * width + i] = Made(v * scale * (f32(OFFSET) + w[i]));
  }
}
