// y[r, :] = (v - mean(v)) / sqrt(mean((v - mean(v))^2) + EPS) * w[0] + w[1]    with v = row_value(r, ..): a row of x, or
// of x plus partial sums.
// Two passes over a row for its mean and its variance, so that a large mean costs no digits. SLICES neighbours share a
// row and write every SLICES-th element; how they come by its sums is a piece.
// needs: lib/step, lib/rows, lib/vector or lib/scalar, lib/row_*, lib/sum_alone or lib/sum_shared; alias X, Y;
//   const WIDTH, EPS, ROWS, SLICES, WORKGROUP

alias Sum = f32;

// Whether an invocation sees one value of its row alone, which it then reads once.
const ONCE = STRIDE >= WIDTH / LANES;
fn seen(mine: Values, row: u32, i: u32) -> Values {
  if (ONCE) { return mine; }
  return row_value(row, i);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = flat_group(group) * WORKGROUP + lane;
  let slice = at % SLICES;
  let row = min(at / SLICES, row_count() - 1u); // whoever has no row still meets the others at their barriers
  let width = WIDTH / LANES;
  let mine = row_value(row, min(slice, width - 1u));
  var sum = Values();
  for (var i = first_of(slice); i < width; i += STRIDE) { sum += seen(mine, row, i); }
  let mean = slices_sum(total(sum), lane) / f32(WIDTH);
  var squares = Values();
  for (var i = first_of(slice); i < width; i += STRIDE) {
    let v = seen(mine, row, i) - mean;
    squares += v * v;
  }
  let scale = inverseSqrt(slices_sum(total(squares), lane) / f32(WIDTH) + EPS);
  if (row != at / SLICES) { return; }
  for (var i = slice; i < width; i += SLICES) {
    let v = seen(mine, row, i);
    keep(row, i, v);
    y[row * width + i] = Made((v - mean) * scale * w[i] + w[width + i]);
  }
}
