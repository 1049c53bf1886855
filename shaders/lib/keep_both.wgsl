// keep(): the value of channel c as it is, and through snake as the operand of the next product.
// needs: lib/snake; y: array<Y>; const Y_BINDING (alpha is the last of the reads)
@group(0) @binding(Y_BINDING - 1) var<storage, read> alpha: array<ALPHA>;
@group(0) @binding(Y_BINDING + 1) var<storage, read_write> snaked: array<SNAKED>;
fn keep(at: u32, c: u32, v: f32) {
  y[at] = Y(v);
  snaked[at] = SNAKED(snake(v, alpha[c]));
}
