// finish(): y = sum + residual. needs y: array<Y>; const Y_WIDTH, Y_BINDING (the residual is the last of the reads)
@group(0) @binding(Y_BINDING - 1) var<storage, read> residual: array<RESIDUAL>;

fn finish(row: u32, column: u32, sums: vec2f) {
  let at = row * Y_WIDTH + column;
  y[at] = Y(sums.x + f32(residual[at]));
}
