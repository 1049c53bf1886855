// finish(): y = sum, in y's format. needs y: array<Y>; const Y_WIDTH
fn finish(row: u32, column: u32, sums: vec2f) { y[row * Y_WIDTH + column] = Y(sums.x); }
