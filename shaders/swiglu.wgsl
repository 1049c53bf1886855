// y[t, i] = silu(x[t, i]) * x[t, WIDTH + i]        one invocation per element of y
// needs: lib/step, lib/rows, lib/activation; alias X, Y; const WIDTH, ROWS, WORKGROUP

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read_write> y: array<Y>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = flat_group(group) * WORKGROUP + lane;
  let t = at / WIDTH;
  if (t >= row_count()) { return; }
  let gate = at + t * WIDTH; // rows of x are twice as long
  y[at] = Y(silu(f32(x[gate])) * f32(x[gate + WIDTH]));
}
