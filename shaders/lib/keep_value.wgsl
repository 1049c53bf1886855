// keep(): the value of channel c as it is. needs y: array<Y>
fn keep(at: u32, c: u32, v: f32) { y[at] = Y(v); }
