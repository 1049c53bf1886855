// finish(): y = up silu(gate) of the two sums, up the first. needs: lib/activation; y: array<Y>; const Y_WIDTH
fn finish(row: u32, column: u32, sums: vec2f) { y[row * Y_WIDTH + column] = Y(sums.x * silu(sums.y)); }
