// finish(): y = sum, in y's format. needs y: array<Y>; const OUT
fn finish(row: u32, column: u32, sum: f32) { y[row * OUT + column] = Y(sum); }
