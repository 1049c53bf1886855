// finish(): y = sum + residual. needs y: array<Y>; const OUT, Y_BINDING (the residual is the last of the reads)
@group(0) @binding(Y_BINDING - 1) var<storage, read> residual: array<RESIDUAL>;

fn finish(row: u32, column: u32, sum: f32) {
  let at = row * OUT + column;
  y[at] = Y(sum + f32(residual[at]));
}
