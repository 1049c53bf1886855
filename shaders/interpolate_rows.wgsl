// y[t, :] = x[t, :] + sum_k weights[t, k] table[taps[t, k], :]        k of four; one invocation per four columns
// needs: lib/step, lib/rows; const WIDTH, ROWS, WORKGROUP

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read> table: array<vec4f>;
@group(0) @binding(2) var<storage, read> taps: array<vec4u>;
@group(0) @binding(3) var<storage, read> weights: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4f>;

const WIDTH4 = WIDTH / 4u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = flat_group(group) * WORKGROUP + lane;
  let t = at / WIDTH4;
  if (t >= row_count()) { return; }
  let i = at % WIDTH4;
  let at4 = taps[t] * WIDTH4 + i;
  let w = weights[t];
  y[at] = x[at] + (w.x * table[at4.x] + w.y * table[at4.y] + w.z * table[at4.z] + w.w * table[at4.w]);
}
