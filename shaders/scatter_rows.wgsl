// y[index[r], :] = x[r, :]        one invocation per element of x; the other rows of y stay
// needs: lib/step, lib/rows; alias X, Y; const WIDTH, ROWS, WORKGROUP

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> index: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<Y>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = flat_group(group) * WORKGROUP + lane;
  let r = at / WIDTH;
  if (r >= row_count()) { return; }
  y[index[r] * WIDTH + at % WIDTH] = Y(x[at]);
}
