// y[r, :] = (v - mean(v)) / sqrt(mean((v - mean(v))^2) + EPS) * w[0] + w[1]    with v a row of x
// Two passes over a row for its mean and its variance, so that a large mean costs no digits. SLICES neighbours share a
// row and write every SLICES-th element; how they come by its sums is a piece.
// needs: lib/step, lib/rows, lib/vector or lib/scalar, lib/row_plain, lib/sum_alone or lib/sum_shared; alias X, Y;
//   const WIDTH, EPS, ROWS, SLICES, WORKGROUP

alias Sum = f32;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = flat_group(group) * WORKGROUP + lane;
  let slice = at % SLICES;
  let row = min(at / SLICES, row_count() - 1u); // whoever has no row still meets the others at their barriers
  let width = WIDTH / LANES;
  var sum = Values();
  for (var i = first_of(slice); i < width; i += STRIDE) { sum += row_value(row, i); }
  let mean = slices_sum(total(sum), lane) / f32(WIDTH);
  var squares = Values();
  for (var i = first_of(slice); i < width; i += STRIDE) {
    let v = row_value(row, i) - mean;
    squares += v * v;
  }
  let scale = inverseSqrt(slices_sum(total(squares), lane) / f32(WIDTH) + EPS);
  if (row != at / SLICES) { return; }
  for (var i = slice; i < width; i += SLICES) {
    y[row * width + i] = Made((row_value(row, i) - mean) * scale * w[i] + w[width + i]);
  }
}
