// y[t, o] = base[t, o] + SIGN (bias[o] + sum_d w[o, d] codebook[codes[t], d]): one invocation per element of y
// needs: lib/step, lib/rows, lib/base_*; alias Y; const ROWS, SIZE, WIDTH, CHANNELS, SIGN, Y_BINDING, WORKGROUP

@group(0) @binding(0) var<storage, read> codes: array<u32>;
@group(0) @binding(1) var<storage, read> codebook: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<f32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(Y_BINDING) var<storage, read_write> y: array<Y>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let at = flat_group(group) * WORKGROUP + lane;
  let t = at / CHANNELS;
  let o = at % CHANNELS;
  if (t >= row_count()) { return; }
  let code = min(codes[t], SIZE - 1u);
  var sum = bias[o];
  for (var d = 0u; d < WIDTH; d++) { sum += w[o * WIDTH + d] * codebook[code * WIDTH + d]; }
  y[at] = Y(base_at(at) + f32(SIGN) * sum);
}
