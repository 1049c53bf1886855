// finish(): y = silu(gate) up of the two sums. needs: lib/activation; y: array<Y>; const Y_WIDTH
fn finish(row: u32, column: u32, sums: vec2f) { y[row * Y_WIDTH + column] = Y(silu(sums.x) * sums.y); }
