// finish(): sum + bias (+ residual), through tanh where TANH = 1. Sums lie in y as they come; only of a transposed
// convolution the first SHIFT values are nobody's, nor are those past the end. Rows that the signal lacks are zeros.
// needs: lib/rows, lib/activation, lib/residual_*, lib/keep_*; const OUT, SHIFT, TANH, Y_CHANNELS, Y_RATE, Y_MISSING
@group(0) @binding(2) var<storage, read> bias: array<BIAS>;

fn finish(row: u32, column: u32, sums: vec2f) {
  let at = row * OUT + column - SHIFT; // below zero wraps around to far beyond y
  let rows = row_count() * Y_RATE;
  if (at >= rows * Y_CHANNELS) { return; }
  let c = column % Y_CHANNELS;
  let v = select(sums.x + bias[c] + residual_at(at), 0.0, at >= (rows - Y_MISSING) * Y_CHANNELS);
  keep(at, c, select(v, tanh_of(v), TANH == 1));
}
