// keep(): the value of channel c through snake, as the operand of the next product.
// needs: lib/snake; y: array<Y>; const Y_BINDING (alpha is the last of the reads)
@group(0) @binding(Y_BINDING - 1) var<storage, read> alpha: array<ALPHA>;
fn keep(at: u32, c: u32, v: f32) { y[at] = Y(snake(v, alpha[c])); }
